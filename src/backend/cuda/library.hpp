// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens the library of CUDA's driver, which is never closed.

#include <string>

#include "backend/cuda/api.hpp"
#include "core/status.hpp"

namespace isthmus::cuda {

struct Library {
  Api calls;
  std::string path;
};

// NOT_FOUND with the reason if the library cannot be opened, is not a CUDA driver, or fails to
// initialize.
[[nodiscard]] Result<Library> open_library(const char* name);

}  // namespace isthmus::cuda
