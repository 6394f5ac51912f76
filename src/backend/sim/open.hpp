// SPDX-License-Identifier: Apache-2.0
#pragma once
// The simulated devices that the environment defines.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sim {

// One platform with the devices that the variable ISTHMUS_SIM describes. NOT_FOUND if it is not
// set.
[[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> open();

// Whether this backend created the event.
[[nodiscard]] bool owns_event(Event& candidate) noexcept;

}  // namespace isthmus::sim
