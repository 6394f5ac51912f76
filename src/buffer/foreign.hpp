#pragma once
// What is checked before memory of somebody else's becomes a buffer.

#include "buffer/buffer.hpp"

namespace isthmus {

// The kind that it is; INVALID_ARGUMENT, WRONG_CONTEXT or OUT_OF_RANGE if it cannot be a buffer on
// `on`.
[[nodiscard]] result<usm_kind> check_foreign(const queue& on, const foreign_memory& what);

}  // namespace isthmus
