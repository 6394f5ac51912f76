// SPDX-License-Identifier: Apache-2.0
#pragma once
// The error for a second free of a pointer.

#include "core/status.hpp"

namespace isthmus {

[[nodiscard]] inline Error freed_before(const void* pointer) noexcept {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer);
}

}  // namespace isthmus
