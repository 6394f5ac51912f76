// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks memory of another library before a buffer adopts it. Thread-safe.

#include <cstddef>

#include "backend/queue.hpp"

namespace isthmus {

struct ForeignMemory {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  UsmKind kind = ISTHMUS_KIND_UNKNOWN;  // UNKNOWN selects the kind that the driver reports
  bool read_only = false;
};

// Returns the kind of the memory. INVALID_ARGUMENT, WRONG_CONTEXT or OUT_OF_RANGE if a buffer on
// `queue` cannot adopt the memory.
[[nodiscard]] Result<UsmKind> check_foreign(const Queue& queue, const ForeignMemory& memory);

}  // namespace isthmus
