// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors of dpctl's calls. Thread-safe.

#include "core/status.hpp"

namespace isthmus::sycl {

// A DRIVER error without a reason, since dpctl returns none.
[[nodiscard]] Error call_failed(const char* name);

}  // namespace isthmus::sycl
