// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block of a resource that cuts its blocks out of larger allocations.

#include <cstddef>

#include "core/sizes.hpp"

namespace isthmus {

// Described by the resource that cut it.
struct CutBlock {
  std::byte* base = nullptr;
  std::size_t nbytes = 0;  // usable bytes; 0: the address is in no block
  bool is_live = false;    // handed out to a caller

  [[nodiscard]] bool contains(const void* pointer) const noexcept {
    return address(pointer) - address(base) < nbytes;
  }
};

}  // namespace isthmus
