#pragma once
// OpenCL drivers: what is installed system-wide, and those whose library is named by the
// environment.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::opencl {

// Opens the libraries that ISTHMUS_OPENCL_LIBRARY names (paths joined by ':'), then the system's
// loader. Platforms live for ever. NOT_FOUND, with every reason, if no platform has a device.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::opencl
