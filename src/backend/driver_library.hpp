#pragma once
// Where the libraries of drivers lie that no standard path leads to.

#include <string>

#include "core/status.hpp"

namespace isthmus {

// For a driver that is opened later: paths joined by ':'. INVALID_ARGUMENT for a back-end whose
// library cannot be chosen.
result<void> set_driver_library(std::string_view backend, std::string paths);
// What the environment names, else what was set, else nothing. Pre: such a back-end.
[[nodiscard]] std::string driver_library(std::string_view backend);

}  // namespace isthmus
