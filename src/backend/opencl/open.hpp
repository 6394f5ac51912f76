// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens OpenCL drivers: those installed system-wide, and those whose library is configured.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::opencl {

// Opens the libraries that ISTHMUS_OPENCL_LIBRARY names (paths joined by ':'), then the system's
// loader. Platforms are never freed. NOT_FOUND, with all reasons, if no platform has a device.
[[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> open();

[[nodiscard]] bool owns_event(Event& candidate) noexcept;

}  // namespace isthmus::opencl
