// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "backend/call_of_any_thread.hpp"
#include "backend/cuda/current.hpp"
#include "core/text.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

// 0 if the driver does not know the attribute.
int attribute(const Api& calls, Number number, Ordinal ordinal) noexcept {
  int value = 0;
  return calls.device_attribute(&value, number, ordinal) == cu::k_success ? value : 0;
}

std::string name_of(const Api& calls, Ordinal ordinal) {
  std::array<char, 256> text{};
  const auto outcome = calls.device_name(text.data(), static_cast<int>(text.size()) - 1, ordinal);
  return outcome == cu::k_success ? text.data() : "CUDA device";
}

// In lower case, as the kernel writes it.
std::string pci_address_of(const Api& calls, Ordinal ordinal) {
  std::array<char, 32> text{};
  const auto outcome = calls.pci_address(text.data(), static_cast<int>(text.size()) - 1, ordinal);
  std::string address{outcome == cu::k_success ? text.data() : ""};
  std::transform(address.begin(), address.end(), address.begin(), [](char each) {
    return each >= 'A' && each <= 'F' ? static_cast<char>(each - 'A' + 'a') : each;
  });
  return address;
}

std::string version_text(const Api& calls) {
  int version = 0;
  static_cast<void>(calls.driver_version(&version));
  return formatted("{}.{}", version / 1000, version % 1000 / 10);
}

// Without concurrent access the host must not touch managed memory while the device works, and a
// program that is correct on every other device would crash. So such devices have no shared kind.
bool has_shared_kind(const Api& calls, Ordinal ordinal) noexcept {
  return attribute(calls, cu::k_attribute_managed_memory, ordinal) != 0 &&
         attribute(calls, cu::k_attribute_concurrent_managed, ordinal) != 0;
}

std::uint64_t capabilities_of(const Api& calls, Ordinal ordinal, const DeviceTraits& traits) {
  std::uint64_t found = ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_HOST_KIND | ISTHMUS_CAN_USM |
                        ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_TELL_FREE_MEMORY |
                        ISTHMUS_CAN_LEND_HANDLES | ISTHMUS_CAN_WRITE_COMBINE;
  if (has_shared_kind(calls, ordinal)) {
    found |= ISTHMUS_CAN_SHARED_KIND;
  }
  if (calls.prefetch != nullptr || calls.prefetch_to_ordinal != nullptr) {
    found |= ISTHMUS_CAN_PREFETCH;
  }
  if (calls.advise != nullptr || calls.advise_ordinal != nullptr) {
    found |= ISTHMUS_CAN_ADVISE;
  }
  if (calls.share_memory != nullptr && calls.open_memory != nullptr &&
      calls.close_memory != nullptr) {
    found |= ISTHMUS_CAN_IPC;
  }
  return traits.virtual_memory ? found | ISTHMUS_CAN_REMAP : found;
}

std::string what_is_lacking(std::uint64_t capabilities) {
  std::string lacks;
  if ((capabilities & ISTHMUS_CAN_SHARED_KIND) == 0) {
    lacks =
        "no shared kind, because the host cannot access managed memory while the device executes "
        "work";
  }
  if ((capabilities & ISTHMUS_CAN_REMAP) == 0) {
    lacks += lacks.empty() ? "" : "; ";
    lacks += "no virtual memory management, so pools cannot move their memory";
  }
  return lacks;
}

}  // namespace

Result<DeviceDescription> describe(const Api& calls, Ordinal index) {
  auto name = name_of(calls, index);
  if (attribute(calls, cu::k_attribute_unified_addressing, index) == 0) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "device '{}' has no unified addressing", name);
  }
  if (attribute(calls, cu::k_attribute_compute_mode, index) == cu::k_mode_prohibited) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "device '{}' is in compute mode 'prohibited'", name);
  }
  std::size_t nbytes = 0;
  if (const auto outcome = calls.device_bytes(&nbytes, index); outcome != cu::k_success) {
    return call_failed("cuDeviceTotalMem", outcome);
  }
  DeviceDescription found;
  found.traits = {
      .max_pitch = attribute(calls, cu::k_attribute_max_pitch, index),
      .virtual_memory = calls.reserve != nullptr && calls.granularity != nullptr &&
                        attribute(calls, cu::k_attribute_virtual_memory, index) != 0,
      .host_virtual_memory = attribute(calls, cu::k_attribute_host_virtual_memory, index) != 0,
      .host_node = attribute(calls, cu::k_attribute_host_node, index),
      .registers_read_only = attribute(calls, cu::k_attribute_registers_read_only, index) != 0,
      .rdma_of_virtual_memory =
          attribute(calls, cu::k_attribute_rdma_of_virtual_memory, index) != 0};
  auto& told = found.properties;
  told.filter = formatted("cuda:gpu:{}", index);
  told.name = std::move(name);
  told.vendor = "NVIDIA";
  told.driver_version = version_text(calls);
  told.pci_address = pci_address_of(calls, index);
  told.type = ISTHMUS_DEVICE_GPU;
  told.compute_units =
      static_cast<std::uint32_t>(attribute(calls, cu::k_attribute_multiprocessors, index));
  told.copy_engines =
      static_cast<std::uint32_t>(attribute(calls, cu::k_attribute_copy_engines, index));
  told.capabilities = capabilities_of(calls, index, found.traits);
  told.memory_bytes = nbytes;
  told.max_allocation_bytes = nbytes;
  told.base_alignment = 256;
  told.max_alignment = std::uint64_t{2} << 20;
  told.lacks = what_is_lacking(told.capabilities);
  return found;
}

Result<ContextHandle> Device::primary() const {
  if (os::drivers_are_gone()) {
    return process_is_ending();
  }
  if (auto* known = known_primary()) {
    return known;
  }
  const std::lock_guard hold{making_};
  if (auto* known = known_primary()) {
    return known;
  }
  ContextHandle made = nullptr;
  if (const auto outcome = calls_.retain_primary(&made, index_); outcome != cu::k_success) {
    return call_failed("cuDevicePrimaryCtxRetain", outcome);
  }
  primary_.store(made, std::memory_order_release);
  return made;
}

Result<MemoryInfo> Device::memory() const {
  auto home = primary();
  ISTHMUS_TRY(home);
  const MadeCurrent here{calls_, *home};
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  auto outcome = here.outcome();
  if (outcome == cu::k_success) {
    outcome = calls_.memory_info(&free_bytes, &total_bytes);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuMemGetInfo", outcome);
  }
  return MemoryInfo{free_bytes, total_bytes};
}

bool Device::claim_managed(std::size_t nbytes, std::size_t free_bytes) noexcept {
  auto claimed = managed_bytes_.load(std::memory_order_relaxed);
  do {
    if (claimed > free_bytes || nbytes > free_bytes - claimed) {
      return false;
    }
  } while (
      !managed_bytes_.compare_exchange_weak(claimed, claimed + nbytes, std::memory_order_relaxed));
  return true;
}

}  // namespace isthmus::cuda
