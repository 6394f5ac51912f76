// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entry point of NVIDIA's driver for the table of drivers.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::cuda {

// Opens libcuda.so.1, or the file that ISTHMUS_CUDA_LIBRARY names.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::cuda
