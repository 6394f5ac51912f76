#pragma once
// The simulated devices that the environment asks for.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sim {

// One platform with the devices that the variable ISTHMUS_SIM describes; without the variable the
// error says so.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::sim
