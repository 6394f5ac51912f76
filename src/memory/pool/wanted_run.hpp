// SPDX-License-Identifier: Apache-2.0
#pragma once
// A request for a page run: the run of a block above 256 KiB, or of a slab.

#include <cstddef>

#include "memory/pool/region_heap.hpp"

namespace isthmus {

struct WantedRun {
  std::size_t nbytes;           // of the caller's request
  RegionHeap::Index count;      // pages
  RegionHeap::Index min_count;  // pages that suffice if there are no more
  std::size_t alignment;        // in bytes, a power of two
  QueueFences::EntryIndex entry;

  [[nodiscard]] std::size_t run_bytes() const noexcept {
    return std::size_t{count} * k_pool_page_bytes;
  }
};

}  // namespace isthmus
