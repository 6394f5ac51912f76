#pragma once
// The drivers this library knows, and what was found of them in this process.
//
// A driver is opened when its devices are first asked for, once, and stays open for the process's
// life.

#include <string>
#include <string_view>
#include <vector>

#include "backend/platform.hpp"

namespace isthmus {

// Opens a driver and lists its platforms; on failure the error says why it is absent.
using open_driver = result<std::vector<ref<platform>>> (*)();

// Texts that stay, each ended by a zero.
struct absent_driver {
  std::string_view backend;
  std::string_view reason;
};

// All platforms found, always in the same order; opens every driver but SYCL's, whose platforms
// come last once it has been opened, or dpctl is in the process.
[[nodiscard]] std::vector<ref<platform>> all_platforms();
[[nodiscard]] std::vector<absent_driver> absent_drivers();

// The back-end that made an event; "host" for what the host completes.
[[nodiscard]] const char* backend_of(event& candidate) noexcept;

// The device that a filter string names, see `isthmus_device_find`. Opens only the drivers that the
// filter allows.
[[nodiscard]] result<device*> find_device(std::string_view filter);
// See `isthmus_device_find_native`. Opens that driver alone.
[[nodiscard]] result<device*> find_native_device(std::string_view backend, void* native);

}  // namespace isthmus
