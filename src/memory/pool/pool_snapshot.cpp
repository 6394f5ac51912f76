// SPDX-License-Identifier: Apache-2.0
// Determines the largest request that the calling thread could make without growing the pool.

#include <algorithm>

#include "memory/pool/own_caches.hpp"
#include "memory/pool/pool.hpp"

namespace isthmus {

// The size of the largest block that could be allocated: from the thread's cache, the central lists
// or a new slab. A request for a new slab flushes the thread's caches first, unless there are so
// many that it is not worthwhile (`ThreadCache::should_flush_own`).
std::size_t Pool::largest_block(const OwnCaches& caches,
                                const RegionHeap::Counted& runs) const noexcept {
  for (auto each = classes_.count(); each-- != 0;) {
    const auto slab_pages = next_slab(each).pages;
    const auto longest = caches.cache_count() <= slab_pages ? runs.longest : runs.longest_free;
    if (caches.has_block(each) || central_.has(each, caches.current_entry()) ||
        slab_pages <= longest) {
      return classes_.bytes_of(each);
    }
  }
  return 0;
}

Snapshot Pool::count_with_largest_request() const noexcept {
  const OwnCaches caches{*this, central_};
  const auto found = regions_.count(&caches);
  auto snapshot = found.snapshot;
  const auto run_bytes = std::size_t{found.longest} * k_pool_page_bytes;
  snapshot.largest_request =
      std::max(run_bytes > SizeClasses::k_largest ? run_bytes : 0, largest_block(caches, found));
  return snapshot;
}

}  // namespace isthmus
