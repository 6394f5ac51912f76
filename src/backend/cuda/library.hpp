// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver's library, opened and never closed.

#include <string>

#include "backend/cuda/api.hpp"
#include "core/status.hpp"

namespace isthmus::cuda {

struct Library {
  Api calls;
  std::string path;
};

// NOT_FOUND with the reason if it cannot be opened, is not a CUDA driver, or does not start.
[[nodiscard]] Result<Library> open_library(const char* name);

}  // namespace isthmus::cuda
