// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads dpctl's C interface to SYCL. The library is opened once and never closed.

#include <string>

#include "backend/sycl/api.hpp"
#include "core/status.hpp"

namespace isthmus::sycl {

struct Library {
  Api calls;
  std::string path;
};

// NOT_FOUND, with the reason, if the library cannot be opened or lacks a function.
[[nodiscard]] Result<Library> open_library(const std::string& name);

}  // namespace isthmus::sycl
