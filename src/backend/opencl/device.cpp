// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/device.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "core/sizes.hpp"
#include "core/text.hpp"
#include "os/available_memory.hpp"

namespace isthmus::opencl {
namespace {

// Queries properties of one device. A property that the driver does not support is 0 or empty.
class DeviceQueries {
 public:
  DeviceQueries(const Api& calls, cl_device_id handle) noexcept : calls_{calls}, handle_{handle} {}

  template <class T>
  [[nodiscard]] T value(cl_device_info property) const noexcept {
    T result{};
    const auto outcome = calls_.get_device_info(handle_, property, sizeof result, &result, nullptr);
    return outcome == CL_SUCCESS ? result : T{};
  }
  // Whether the property, a set of bits, includes `bit`.
  [[nodiscard]] bool has(cl_device_info property, cl_bitfield bit) const noexcept {
    return (value<cl_bitfield>(property) & bit) != 0;
  }
  [[nodiscard]] std::string text(cl_device_info property) const {
    std::size_t nbytes = 0;
    if (calls_.get_device_info(handle_, property, 0, nullptr, &nbytes) != CL_SUCCESS ||
        nbytes == 0) {
      return {};
    }
    std::string result(nbytes, '\0');
    calls_.get_device_info(handle_, property, nbytes, result.data(), nullptr);
    result.resize(std::min(result.find('\0'), result.size()));
    const auto first = result.find_first_not_of(' ');
    return first == std::string::npos ? std::string{} : result.substr(first);
  }

 private:
  const Api& calls_;
  cl_device_id handle_;
};

isthmus_device_type_t type_of(cl_device_type type) noexcept {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) {
    return ISTHMUS_DEVICE_GPU;
  }
  if ((type & CL_DEVICE_TYPE_CPU) != 0) {
    return ISTHMUS_DEVICE_CPU;
  }
  return (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? ISTHMUS_DEVICE_ACCELERATOR : 0;
}

const char* type_name(isthmus_device_type_t type) noexcept {
  switch (type) {
    case ISTHMUS_DEVICE_CPU: return "cpu";
    case ISTHMUS_DEVICE_GPU: return "gpu";
    default: return "accelerator";
  }
}

DeviceTraits traits_of(const DeviceQueries& query, const Api& calls, const PlatformFacts& facts,
                       isthmus_device_type_t type) {
  DeviceTraits traits;
  traits.usm =
      calls.allocate_device != nullptr && calls.copy_usm != nullptr &&
      query.text(CL_DEVICE_EXTENSIONS).find("cl_intel_unified_shared_memory") != std::string::npos;
  traits.svm =
      facts.has_svm && query.has(CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
  traits.is_host = type == ISTHMUS_DEVICE_CPU;
  traits.native_kernels =
      traits.is_host && query.has(CL_DEVICE_EXECUTION_CAPABILITIES, CL_EXEC_NATIVE_KERNEL);
  // PoCL 7 reports system SVM too, but refuses to fill such memory.
  traits.accepts_host_pointers =
      traits.is_host && facts.is_intel &&
      query.has(CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_SYSTEM);
  traits.ends_dependents = traits.is_host && facts.is_intel;
  traits.needs_drain_at_exit = traits.ends_dependents;
  return traits;
}

constexpr std::uint64_t flag_if(bool condition, std::uint64_t capability) noexcept {
  return condition ? capability : 0;
}

// The supported USM kinds, as reported by the extension.
std::uint64_t usm_kinds(const DeviceQueries& query) {
  const auto offers = [&](cl_device_info kind, std::uint64_t capability) {
    return flag_if(query.has(kind, CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL), capability);
  };
  return offers(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, ISTHMUS_CAN_DEVICE_KIND) |
         offers(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, ISTHMUS_CAN_SHARED_KIND) |
         offers(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, ISTHMUS_CAN_HOST_KIND);
}

std::uint64_t svm_kinds(const DeviceQueries& query) {
  const bool fine_grained = query.has(CL_DEVICE_SVM_CAPABILITIES, CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
  return ISTHMUS_CAN_DEVICE_KIND | flag_if(fine_grained, ISTHMUS_CAN_SHARED_KIND);
}

std::uint64_t capabilities_of(const DeviceQueries& query, const Api& calls,
                              const DeviceTraits& traits) {
  std::uint64_t capabilities =
      ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_PROFILE | ISTHMUS_CAN_EXPORT_HANDLES;
  if (traits.usm) {
    capabilities |= ISTHMUS_CAN_USM | usm_kinds(query);
    capabilities |= flag_if(calls.migrate != nullptr, ISTHMUS_CAN_PREFETCH);
    // Intel's CPU runtime accepts some advice and refuses other advice with CL_INVALID_VALUE, by no
    // documented rule. Advice would have no effect on that runtime.
    capabilities |= flag_if(calls.advise != nullptr && !traits.is_host, ISTHMUS_CAN_ADVISE);
  } else if (traits.svm) {
    capabilities |= svm_kinds(query);
  }
  if (traits.is_host) {
    capabilities |=
        ISTHMUS_CAN_QUERY_FREE_MEMORY | ISTHMUS_CAN_RUN_FUNCTIONS | ISTHMUS_CAN_PREFETCH;
  }
  return capabilities;
}

std::string missing_features(const DeviceTraits& traits, std::uint64_t capabilities) {
  if (traits.usm) {
    return (capabilities & ISTHMUS_CAN_ADVISE) == 0 ? "no memory advice" : "";
  }
  if (!traits.svm) {
    return "no memory that has pointers: neither cl_intel_unified_shared_memory nor OpenCL 2's SVM";
  }
  const bool fine_grained = (capabilities & ISTHMUS_CAN_SHARED_KIND) != 0;
  return formatted(
      "no cl_intel_unified_shared_memory: coarse-grained SVM is used for the device kind, {}; no "
      "memory advice",
      fine_grained ? "fine-grained SVM for the shared kind, nothing for the host kind"
                   : "nothing for the shared and host kinds");
}

// Drivers accept the alignment as a 32-bit number. If the context aligns by allocating more, the
// largest allocation must leave space for the padding, and device memory is too scarce to align to
// more than a huge page.
std::uint64_t max_alignment_of(const DeviceTraits& traits, std::uint64_t max_allocation) {
  constexpr std::uint64_t k_max_on_host = std::uint64_t{1} << 31;
  constexpr std::uint64_t k_max_on_device = std::uint64_t{1} << 21;
  return std::min(traits.is_host ? k_max_on_host : k_max_on_device,
                  std::bit_floor(max_allocation / 4));
}

std::uint64_t base_alignment_of(const DeviceQueries& query) {
  const std::uint64_t alignment = query.value<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;  // bits
  return is_power_of_two(alignment) ? alignment : 64;
}

}  // namespace

Result<DeviceDescription> describe(const Api& calls, const PlatformFacts& facts,
                                   cl_device_id handle, TypeNumbers& numbers) {
  const DeviceQueries query{calls, handle};
  const auto type = type_of(query.value<cl_device_type>(CL_DEVICE_TYPE));
  if (type == 0) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "device '{}' has an unsupported type: only CPUs, GPUs and accelerators can be used",
                query.text(CL_DEVICE_NAME));
  }
  if (query.value<cl_bool>(CL_DEVICE_AVAILABLE) == CL_FALSE) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "the driver reports device '{}' as not available",
                query.text(CL_DEVICE_NAME));
  }
  DeviceDescription description;
  description.traits = traits_of(query, calls, facts, type);
  auto& properties = description.properties;
  properties.filter =
      formatted("opencl:{}:{}", type_name(type), numbers.at(static_cast<std::size_t>(type))++);
  properties.name = query.text(CL_DEVICE_NAME);
  properties.vendor = query.text(CL_DEVICE_VENDOR);
  properties.driver_version = query.text(CL_DRIVER_VERSION);
  properties.type = type;
  properties.compute_units = query.value<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS);
  properties.copy_engines = 1;  // OpenCL does not report the number
  properties.capabilities = capabilities_of(query, calls, description.traits);
  properties.memory_bytes = query.value<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
  properties.max_allocation_bytes = query.value<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  properties.base_alignment = base_alignment_of(query);
  properties.max_alignment = max_alignment_of(description.traits, properties.max_allocation_bytes);
  properties.limitations = missing_features(description.traits, properties.capabilities);
  return description;
}

Result<MemoryInfo> Device::memory() const {
  if (!traits_.is_host) {
    return isthmus::Device::memory();
  }
  const auto physical = os::physical_memory();
  return MemoryInfo{physical.available, physical.total};
}

}  // namespace isthmus::opencl
