// SPDX-License-Identifier: Apache-2.0
#pragma once
// The drivers that this library supports, and the platforms of those that are available to this
// process.
//
// A driver is opened once, when its devices are first needed, and remains open until the process
// exits. Thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "backend/platform.hpp"

namespace isthmus {

// Opens a driver and lists its platforms. On failure the error gives the reason why the driver is
// unavailable.
using OpenDriver = Result<std::vector<Ref<Platform>>> (*)();

// Null-terminated strings that are never freed.
struct AbsentDriver {
  std::string_view backend;
  std::string_view reason;
};

// Lists all available platforms, always in the same order. Opens every driver except SYCL's. SYCL
// platforms are last, and are listed only if the SYCL driver was opened before or dpctl is loaded
// in the process.
[[nodiscard]] std::vector<Ref<Platform>> all_platforms();
[[nodiscard]] std::vector<AbsentDriver> absent_drivers();

// The backend that created an event; "host" for events that the host completes.
[[nodiscard]] const char* backend_of(Event& candidate) noexcept;

// The device for a filter string, see `isthmus_device_find`. Opens only the drivers that the filter
// allows.
[[nodiscard]] Result<Device*> find_device(std::string_view filter);
// See `isthmus_device_find_native`. Opens only that driver.
[[nodiscard]] Result<Device*> find_native_device(std::string_view backend, void* native);

}  // namespace isthmus
