// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens NVIDIA's driver, for the table of drivers (drivers.hpp).

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::cuda {

// Opens libcuda.so.1, or the file that ISTHMUS_CUDA_LIBRARY names.
[[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> open();

[[nodiscard]] bool owns_event(Event& candidate) noexcept;

}  // namespace isthmus::cuda
