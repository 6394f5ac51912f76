// SPDX-License-Identifier: Apache-2.0
// How much of a pool's memory the calling thread's next request could get without growth.

#include <algorithm>

#include "memory/own_caches.hpp"
#include "memory/pool.hpp"

namespace isthmus {

// The size of the largest block that could be allocated: from the thread's cache, the central lists
// or a new slab. A request for a new slab flushes the thread's caches first, unless there are so
// many that it does not pay (`ThreadCache::pays_to_empty_own`).
std::size_t Pool::largest_block(const OwnCaches& mine,
                                const RegionHeap::Counted& runs) const noexcept {
  for (auto each = classes_.count(); each-- != 0;) {
    const auto slab_grains = next_slab(each).grains;
    const auto reach = mine.lanes() <= slab_grains ? runs.reach : runs.free_reach;
    if (mine.has_block(each) || central_.has(each, mine.whom()) || slab_grains <= reach) {
      return classes_.bytes_of(each);
    }
  }
  return 0;
}

Snapshot Pool::count_with_largest_request() const noexcept {
  const OwnCaches mine{*this, *slots_, central_};
  const auto found = regions_.count(&mine);
  auto seen = found.seen;
  const auto run_bytes = std::size_t{found.reach} * k_pool_page_bytes;
  seen.largest_request =
      std::max(run_bytes > SizeClasses::k_largest ? run_bytes : 0, largest_block(mine, found));
  return seen;
}

}  // namespace isthmus
