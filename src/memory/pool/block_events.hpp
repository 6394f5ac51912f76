// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reports the blocks of pools to observers (recorder/observers.hpp), outside of the locks and the
// thread caches of the pools. Thread-safe. `pool` identifies the pool.

#include <cstddef>
#include <span>

#include "memory/pool/region_heap.hpp"
#include "memory/pool/slab_list.hpp"
#include "recorder/observers.hpp"

namespace isthmus {

// Emits `allocate`, `free` or `reuse` for a block that the page map contains. `requested` is 0
// except for `allocate`. `queue` may be null.
void emit_block_event(MemoryEventKind kind, const void* pool, const void* block,
                      std::size_t requested, const Queue* queue) noexcept;

// Emits `reuse` for each of these blocks that a request of `queue` took from another queue.
void observe_reuse(const void* pool, const TakenBlocks& taken, std::span<void* const> blocks,
                   const Queue& queue) noexcept;
// Emits `reuse` if a request of `queue`, which has that entry, took the run from another queue.
void observe_reuse(const void* pool, const RegionHeap::PageRun& run, QueueFences::EntryIndex entry,
                   const Queue& queue) noexcept;

}  // namespace isthmus
