// SPDX-License-Identifier: Apache-2.0
#pragma once
// Libraries that implement OpenCL. They are opened and never closed.

#include <string>
#include <vector>

#include "backend/opencl/api.hpp"
#include "core/status.hpp"

namespace isthmus::opencl {

struct Library {
  Api calls;  // without the USM functions, which each platform has separately
  std::string path;
  std::vector<cl_platform_id> platforms;
};

// NOT_FOUND with the reason if the library cannot be opened or lists no platform.
[[nodiscard]] Result<Library> open_library(const std::string& name);

}  // namespace isthmus::opencl
