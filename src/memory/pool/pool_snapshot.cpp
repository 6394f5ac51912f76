// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_snapshot.hpp"

#include <algorithm>

#include "memory/pool/own_caches.hpp"
#include "memory/pool/region_count.hpp"

namespace isthmus {
namespace {

// The size of the largest block that could be allocated: from the thread's cache, the central lists
// or a new slab. A request for a new slab flushes the thread's caches first, unless there are so
// many that it is not worthwhile (`ThreadCache::should_flush_own`).
std::size_t largest_block(const SlabSource& slabs, const OwnCaches& own,
                          const CountedRuns& runs) noexcept {
  const auto& classes = slabs.classes();
  for (auto each = classes.count(); each-- != 0;) {
    const auto slab_pages = slabs.next_shape(each).pages;
    const auto longest = own.cache_count() <= slab_pages ? runs.longest : runs.longest_free;
    if (own.has_block(each) || slabs.lists().has(each, own.current_entry()) ||
        slab_pages <= longest) {
      return classes.bytes_of(each);
    }
  }
  return 0;
}

}  // namespace

Snapshot count_with_largest_request(const ThreadCacheOwner& caches, const SlabSource& slabs,
                                    const RegionHeap& regions) noexcept {
  const OwnCaches own{caches, slabs.lists()};
  const auto found = RegionCount{regions, &own}.count();
  auto snapshot = found.snapshot;
  const auto run_bytes = std::size_t{found.longest} * k_pool_page_bytes;
  snapshot.largest_request = std::max(run_bytes > SizeClasses::k_largest ? run_bytes : 0,
                                      largest_block(slabs, own, found));
  return snapshot;
}

}  // namespace isthmus
