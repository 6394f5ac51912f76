// SPDX-License-Identifier: Apache-2.0
// A device has memory, and queues that execute operations.
//
//   auto best = isthmus::device::best();        // the default device
//   isthmus::device second("opencl:cpu:1");
//
// Cost: finding a device opens the drivers that its filter allows, once; after that it is a lookup.
// Thread-safe.
#pragma once

#include <isthmus/platform.hpp>

#include <string>

namespace isthmus {
inline namespace v1 {

// The type of a device.
enum class device_type : isthmus_device_type_t {
  cpu = ISTHMUS_DEVICE_CPU,
  gpu = ISTHMUS_DEVICE_GPU,
  accelerator = ISTHMUS_DEVICE_ACCELERATOR,
};

// "cpu", "gpu" or "accelerator".
[[nodiscard]] constexpr std::string_view name(device_type value) noexcept {
  switch (value) {
    case device_type::cpu: return "cpu";
    case device_type::gpu: return "gpu";
    case device_type::accelerator: return "accelerator";
  }
  return "unknown";
}

// The properties of a device. The strings live as long as the device.
struct device_info {
  std::string_view backend;
  std::string_view filter;  // identifies this device: the argument of its constructor
  std::string_view name;
  std::string_view vendor;
  std::string_view driver_version;
  device_type type = device_type::cpu;
  std::uint32_t compute_units = 0;
  std::uint32_t copy_engines = 0;
  // A bit per capability, see device::can().
  std::uint64_t capabilities = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t max_allocation_bytes = 0;
  std::size_t base_alignment = 0;  // of an allocation without an alignment
  std::size_t max_alignment = 0;
  // Missing features of the driver and their substitutes, or "".
  std::string_view limitations;
};

// The memory of a device, as the driver reports it.
struct memory_info {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

template <>
inline constexpr const char* detail::class_name<isthmus_device_t> = "device";

// A counted reference to a device.
class device : public detail::handle<device, isthmus_device_t, isthmus_device_retain,
                                     isthmus_device_release> {
 public:
  // The device that a filter names: backend, type and number, each optional, joined by ':'. Throws
  // not_found with a list of the devices found. See isthmus_device_find.
  explicit device(const std::string& filter) : handle(find(filter)) {}
  explicit device(const char* filter) : device(std::string(filter)) {}

  device() noexcept = default;
  // The default device: the one that the environment variable ISTHMUS_DEVICE names, otherwise the
  // best device with USM.
  [[nodiscard]] static device best() { return device(""); }

  [[nodiscard]] device_info info() const {
    const isthmus_device_info_t raw = raw_info();
    return {raw.backend,
            raw.filter,
            raw.name,
            raw.vendor,
            raw.driver_version,
            static_cast<device_type>(raw.type),
            raw.compute_units,
            raw.copy_engines,
            raw.capabilities,
            raw.memory_bytes,
            raw.max_allocation_bytes,
            raw.base_alignment,
            raw.max_alignment,
            raw.limitations};
  }
  [[nodiscard]] bool can(capability capability) const {
    return (raw_info().capabilities & static_cast<std::uint64_t>(capability)) != 0;
  }
  // True if the device has memory of this kind.
  [[nodiscard]] bool offers(v1::kind usm_kind) const {
    switch (usm_kind) {
      case kind::device: return can(capability::device_kind);
      case kind::shared: return can(capability::shared_kind);
      case kind::host: return can(capability::host_kind);
      case kind::unknown: break;
    }
    return false;
  }
  // Free and total memory. Throws unsupported where the driver does not report it.
  [[nodiscard]] memory_info memory() const {
    const auto raw =
        detail::read<isthmus_device_memory_info_t>(isthmus_device_memory_info, require());
    return {raw.free_bytes, raw.total_bytes};
  }
  [[nodiscard]] v1::platform platform() const { return v1::platform::share(raw_info().platform); }
  // The driver's handle (OpenCL: cl_device_id), or NULL where there is none.
  [[nodiscard]] void* native() const { return raw_info().native; }

  // The device with this driver handle: `device::of_native("opencl", id)`. Throws not_found if no
  // such device is listed, invalid_argument for an unknown backend. Precondition: `native` is a
  // live handle of that driver.
  [[nodiscard]] static device of_native(const std::string& backend, void* native) {
    isthmus_device_t* raw = nullptr;
    detail::check(isthmus_device_find_native(backend.c_str(), native, &raw));
    return device(raw);
  }

  friend bool operator==(const device& a, const device& b) noexcept { return a.get() == b.get(); }

 protected:
  explicit device(isthmus_device_t* raw) noexcept : handle(raw) {}

 private:
  static isthmus_device_t* find(const std::string& filter) {
    isthmus_device_t* raw = nullptr;
    detail::check(isthmus_device_find(filter.c_str(), &raw));
    return raw;
  }
  isthmus_device_info_t raw_info() const {
    return detail::read<isthmus_device_info_t>(isthmus_device_info, require());
  }
};

// The devices of a platform.
[[nodiscard]] inline std::vector<device> devices(const isthmus::platform& platform) {
  std::vector<device> result;
  for (std::size_t i = 0; i < platform.info().device_count; ++i) {
    result.push_back(detail::make<device>(isthmus_platform_device, platform.get(), i));
  }
  return result;
}

// The devices of all platforms. Opens every driver.
[[nodiscard]] inline std::vector<device> devices() {
  std::vector<device> result;
  for (const platform& platform : platforms()) {
    for (device& member : devices(platform)) result.push_back(std::move(member));
  }
  return result;
}

}  // namespace v1
}  // namespace isthmus
