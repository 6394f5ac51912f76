// SPDX-License-Identifier: Apache-2.0
#pragma once
// The paths of driver libraries that are not installed in standard locations. Thread-safe.

#include <string>

#include "core/status.hpp"

namespace isthmus {

// Sets the paths, joined by ':', for a driver that has not been opened yet. INVALID_ARGUMENT for a
// backend whose library cannot be chosen.
Result<void> set_driver_library(std::string_view backend, std::string paths);
// Returns the paths from the environment variable, else those that were set, else "".
[[nodiscard]] std::string driver_library(std::string_view backend);

}  // namespace isthmus
