#pragma once
// Libraries that implement OpenCL, opened and never closed.

#include <string>
#include <vector>

#include "backend/opencl/api.hpp"
#include "core/status.hpp"

namespace isthmus::opencl {

struct library {
  api calls;  // without the functions of USM, which each platform has its own of
  std::string path;
  std::vector<platform_handle> platforms;
};

// NOT_FOUND with the reason if it cannot be opened or lists no platform.
[[nodiscard]] result<library> open_library(const std::string& name);

// False in a forked child, which has none of the driver's threads, and once `main` has returned, when
// the driver may have torn itself down: then handles are left to the operating system.
[[nodiscard]] bool may_call() noexcept;
// Arms the second half of that; after a library was opened, so that we hear of the end before it does.
void watch_for_exit() noexcept;

}  // namespace isthmus::opencl
