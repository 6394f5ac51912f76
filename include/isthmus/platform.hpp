// SPDX-License-Identifier: Apache-2.0
// A platform: one vendor's driver, or the host. Use it to list the drivers of a machine; to obtain
// a device see device.hpp.
//
// Cost: the first call of platforms() opens every driver (60 ms for Intel's); later calls are
// cheap. Thread-safe.
#pragma once

#include <isthmus/handle.hpp>

#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v1 {

// The properties of a platform. The strings live as long as the platform.
struct platform_info {
  std::string_view backend;  // "host", "sim", "cuda", "opencl", "sycl"
  std::string_view name;
  std::string_view vendor;
  std::string_view version;
  std::string_view library;  // the driver's file as it was opened, or ""
  std::size_t device_count = 0;
};

template <>
inline constexpr const char* detail::class_name<isthmus_platform_t> = "platform";

// A counted reference to a platform.
class platform : public detail::handle<platform, isthmus_platform_t, isthmus_platform_retain,
                                       isthmus_platform_release> {
 public:
  [[nodiscard]] platform_info info() const {
    const auto raw = detail::read<isthmus_platform_info_t>(isthmus_platform_info, require());
    return {raw.backend, raw.name, raw.vendor, raw.version, raw.library, raw.device_count};
  }

  friend bool operator==(const platform& a, const platform& b) noexcept {
    return a.get() == b.get();
  }
};

// The platforms found. The first call opens every driver.
[[nodiscard]] inline std::vector<platform> platforms() {
  std::size_t count = 0;
  detail::check(isthmus_platform_count(&count));
  std::vector<platform> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(detail::make<platform>(isthmus_platform_get, i));
  }
  return result;
}

// A driver that is absent or unusable, with the reason. The strings are never freed.
struct absent_driver {
  std::string_view backend;
  std::string_view reason;
};

// The drivers that are absent or unusable.
[[nodiscard]] inline std::vector<absent_driver> absent() {
  std::size_t count = 0;
  detail::check(isthmus_absent_driver_count(&count));
  std::vector<absent_driver> result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto raw = detail::read<isthmus_absent_driver_info_t>(isthmus_absent_driver_info, i);
    result.push_back({raw.backend, raw.reason});
  }
  return result;
}

}  // namespace v1
}  // namespace isthmus
