// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/device.hpp"

#include <bit>

#include "core/text.hpp"
#include "os/available_memory.hpp"

namespace isthmus::sycl {
namespace {

// dpctl does not report the base alignment. No known runtime has a smaller one.
constexpr std::uint64_t k_base_alignment = 64;

isthmus_device_type_t type_of(int native_type) noexcept {
  switch (native_type) {
    case dp::k_type_cpu: return ISTHMUS_DEVICE_CPU;
    case dp::k_type_gpu: return ISTHMUS_DEVICE_GPU;
    case dp::k_type_accelerator: return ISTHMUS_DEVICE_ACCELERATOR;
    default: return static_cast<isthmus_device_type_t>(0);
  }
}

const char* type_name(isthmus_device_type_t type) noexcept {
  switch (type) {
    case ISTHMUS_DEVICE_GPU: return "gpu";
    case ISTHMUS_DEVICE_ACCELERATOR: return "accelerator";
    default: return "cpu";
  }
}

std::uint64_t capabilities_of(const Api& calls, DeviceReference device,
                              isthmus_device_type_t type) {
  const auto offers = [&](int aspect, std::uint64_t capability) {
    return calls.has_aspect(device, aspect) ? capability : 0;
  };
  const auto host_capabilities = type == ISTHMUS_DEVICE_CPU
                                     ? ISTHMUS_CAN_RUN_FUNCTIONS | ISTHMUS_CAN_QUERY_FREE_MEMORY
                                     : std::uint64_t{0};
  return ISTHMUS_CAN_USM | ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_EXPORT_HANDLES |
         ISTHMUS_CAN_PREFETCH | ISTHMUS_CAN_ADVISE |
         offers(dp::k_aspect_usm_device, ISTHMUS_CAN_DEVICE_KIND) |
         offers(dp::k_aspect_usm_shared, ISTHMUS_CAN_SHARED_KIND) |
         offers(dp::k_aspect_usm_host, ISTHMUS_CAN_HOST_KIND) | host_capabilities;
}

// As for OpenCL devices, an allocation needs additional space for its alignment, and device memory
// is too scarce for alignments above a huge page.
std::uint64_t max_alignment_of(isthmus_device_type_t type, std::uint64_t max_allocation) {
  constexpr std::uint64_t k_max_on_host = std::uint64_t{1} << 31;
  constexpr std::uint64_t k_max_on_device = std::uint64_t{1} << 21;
  return std::min(type == ISTHMUS_DEVICE_CPU ? k_max_on_host : k_max_on_device,
                  std::bit_floor(max_allocation / 4));
}

}  // namespace

Result<DeviceProperties> describe(const Api& calls, DeviceReference reference,
                                  TypeNumbers& numbers) {
  DeviceProperties properties;
  properties.name = take_text(calls, calls.device_name(reference));
  properties.type = type_of(calls.device_type(reference));
  if (properties.type == 0) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "device '{}' has an unsupported type: only CPUs, GPUs and accelerators can be used",
                properties.name);
  }
  if (!calls.has_aspect(reference, dp::k_aspect_usm_device)) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "device '{}' has no USM", properties.name);
  }
  properties.filter = formatted("sycl:{}:{}", type_name(properties.type),
                                numbers.at(static_cast<std::size_t>(properties.type))++);
  properties.vendor = take_text(calls, calls.device_vendor(reference));
  properties.driver_version = take_text(calls, calls.device_driver(reference));
  properties.compute_units = calls.compute_units(reference);
  properties.copy_engines = 1;  // dpctl does not report the number
  properties.capabilities = capabilities_of(calls, reference, properties.type);
  properties.memory_bytes = calls.memory_bytes(reference);
  properties.max_allocation_bytes = calls.max_allocation(reference);
  properties.base_alignment = k_base_alignment;
  properties.max_alignment = max_alignment_of(properties.type, properties.max_allocation_bytes);
  return properties;
}

Result<MemoryInfo> Device::memory() const {
  if (!is_host()) {
    return isthmus::Device::memory();
  }
  const auto physical = os::physical_memory();
  return MemoryInfo{physical.available, physical.total};
}

}  // namespace isthmus::sycl
