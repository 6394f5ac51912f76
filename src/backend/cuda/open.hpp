#pragma once
// NVIDIA's driver, as the table of drivers sees it.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::cuda {

// Opens libcuda.so.1, or the file that ISTHMUS_CUDA_LIBRARY names.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::cuda
