// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block of a resource that sub-allocates its blocks from larger allocations.

#include <cstddef>

#include "core/sizes.hpp"

namespace isthmus {

struct CutBlock {
  std::byte* base = nullptr;
  std::size_t nbytes = 0;  // usable bytes; 0: the address is in no block
  bool is_live = false;    // allocated by a caller

  [[nodiscard]] bool contains(const void* pointer) const noexcept {
    return address(pointer) - address(base) < nbytes;
  }
};

}  // namespace isthmus
