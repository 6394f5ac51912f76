// SPDX-License-Identifier: Apache-2.0
#pragma once
// Determines the largest request that the calling thread could make without growing the pool.

#include "memory/base/snapshot.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab_source.hpp"
#include "memory/pool/thread_cache.hpp"

namespace isthmus {

// As `RegionCount::count`, with `Snapshot::largest_request`. Thread-safe; takes the locks of the
// parts one at a time.
[[nodiscard]] Snapshot count_with_largest_request(const ThreadCacheOwner& caches,
                                                  const SlabSource& slabs,
                                                  const RegionHeap& regions) noexcept;

}  // namespace isthmus
