// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device_description.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "backend/cuda/errors.hpp"
#include "core/text.hpp"

namespace isthmus::cuda {
namespace {

// Returns 0 if the driver does not support the attribute.
int attribute(const Api& calls, unsigned attribute_id, CUdevice ordinal) noexcept {
  int value = 0;
  return calls.device_attribute(&value, attribute_id, ordinal) == cu::k_success ? value : 0;
}

std::string name_of(const Api& calls, CUdevice ordinal) {
  std::array<char, 256> text{};
  const auto outcome = calls.device_name(text.data(), static_cast<int>(text.size()) - 1, ordinal);
  return outcome == cu::k_success ? text.data() : "CUDA device";
}

// Returns the address in lower case, as the Linux kernel writes it.
std::string pci_address_of(const Api& calls, CUdevice ordinal) {
  std::array<char, 32> text{};
  const auto outcome = calls.pci_address(text.data(), static_cast<int>(text.size()) - 1, ordinal);
  std::string address{outcome == cu::k_success ? text.data() : ""};
  std::transform(address.begin(), address.end(), address.begin(), [](char character) {
    return character >= 'A' && character <= 'F' ? static_cast<char>(character - 'A' + 'a')
                                                : character;
  });
  return address;
}

std::string version_text(const Api& calls) {
  int version = 0;
  static_cast<void>(calls.driver_version(&version));
  return formatted("{}.{}", version / 1000, version % 1000 / 10);
}

// Devices without concurrent managed access have no shared kind. The host must not access their
// managed memory while the device executes work, so a program that is correct on every other device
// would crash.
bool has_shared_kind(const Api& calls, CUdevice ordinal) noexcept {
  return attribute(calls, cu::k_attribute_managed_memory, ordinal) != 0 &&
         attribute(calls, cu::k_attribute_concurrent_managed_access, ordinal) != 0;
}

std::uint64_t capabilities_of(const Api& calls, CUdevice ordinal, const DeviceTraits& traits) {
  std::uint64_t capabilities = ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_HOST_KIND | ISTHMUS_CAN_USM |
                               ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_QUERY_FREE_MEMORY |
                               ISTHMUS_CAN_EXPORT_HANDLES | ISTHMUS_CAN_WRITE_COMBINE;
  if (has_shared_kind(calls, ordinal)) {
    capabilities |= ISTHMUS_CAN_SHARED_KIND;
  }
  if (calls.prefetch != nullptr || calls.prefetch_to_ordinal != nullptr) {
    capabilities |= ISTHMUS_CAN_PREFETCH;
  }
  if (calls.advise != nullptr || calls.advise_ordinal != nullptr) {
    capabilities |= ISTHMUS_CAN_ADVISE;
  }
  if (calls.share_memory != nullptr && calls.open_memory != nullptr &&
      calls.close_memory != nullptr) {
    capabilities |= ISTHMUS_CAN_IPC;
  }
  return traits.virtual_memory ? capabilities | ISTHMUS_CAN_REMAP : capabilities;
}

std::string describe_missing(std::uint64_t capabilities) {
  std::string missing;
  if ((capabilities & ISTHMUS_CAN_SHARED_KIND) == 0) {
    missing =
        "no shared kind, because the host cannot access managed memory while the device executes "
        "work";
  }
  if ((capabilities & ISTHMUS_CAN_REMAP) == 0) {
    missing += missing.empty() ? "" : "; ";
    missing += "no virtual memory management, so pools cannot move their memory";
  }
  return missing;
}

}  // namespace

Result<DeviceDescription> describe(const Api& calls, CUdevice index) {
  auto name = name_of(calls, index);
  if (attribute(calls, cu::k_attribute_unified_addressing, index) == 0) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "device '{}' has no unified addressing", name);
  }
  if (attribute(calls, cu::k_attribute_compute_mode, index) == cu::k_compute_mode_prohibited) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "device '{}' is in compute mode 'prohibited'", name);
  }
  std::size_t nbytes = 0;
  if (const auto outcome = calls.device_bytes(&nbytes, index); outcome != cu::k_success) {
    return call_failed("cuDeviceTotalMem", outcome);
  }
  DeviceDescription description;
  description.traits = {
      .max_pitch = attribute(calls, cu::k_attribute_max_pitch, index),
      .virtual_memory = calls.reserve != nullptr && calls.granularity != nullptr &&
                        attribute(calls, cu::k_attribute_virtual_memory, index) != 0,
      .host_virtual_memory = attribute(calls, cu::k_attribute_host_numa_virtual_memory, index) != 0,
      .host_numa_node = attribute(calls, cu::k_attribute_host_numa_id, index),
      .can_register_read_only = attribute(calls, cu::k_attribute_read_only_register, index) != 0,
      .rdma_with_virtual_memory =
          attribute(calls, cu::k_attribute_rdma_with_virtual_memory, index) != 0};
  auto& properties = description.properties;
  properties.filter = formatted("cuda:gpu:{}", index);
  properties.name = std::move(name);
  properties.vendor = "NVIDIA";
  properties.driver_version = version_text(calls);
  properties.pci_address = pci_address_of(calls, index);
  properties.type = ISTHMUS_DEVICE_GPU;
  properties.compute_units =
      static_cast<std::uint32_t>(attribute(calls, cu::k_attribute_multiprocessors, index));
  properties.copy_engines =
      static_cast<std::uint32_t>(attribute(calls, cu::k_attribute_copy_engines, index));
  properties.capabilities = capabilities_of(calls, index, description.traits);
  properties.memory_bytes = nbytes;
  properties.max_allocation_bytes = nbytes;
  properties.base_alignment = 256;
  properties.max_alignment = std::uint64_t{2} << 20;
  properties.limitations = describe_missing(properties.capabilities);
  return description;
}

}  // namespace isthmus::cuda
