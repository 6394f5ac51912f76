// SPDX-License-Identifier: Apache-2.0
#pragma once
// The simulated devices that the environment defines.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sim {

// One platform with the devices that the variable ISTHMUS_SIM describes. NOT_FOUND if it is not
// set.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

// Whether the event was made by this backend.
[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::sim
