#pragma once
// A block of a resource that cuts its blocks out of larger pieces of memory.

#include <cstddef>

#include "core/sizes.hpp"

namespace isthmus {

// As the resource that cut it knows it.
struct cut_block {
  std::byte* base = nullptr;
  std::size_t nbytes = 0;  // usable; 0: the address is in no block
  bool is_live = false;    // a caller has it

  [[nodiscard]] bool holds(const void* pointer) const noexcept {
    return address(pointer) - address(base) < nbytes;
  }
};

}  // namespace isthmus
