// SPDX-License-Identifier: Apache-2.0
#pragma once
// The slabs of a pool: serves the refills of thread caches, from the central lists and from slabs
// cut from free page runs, and receives the blocks that thread caches return.
//
// Never grows the pool and never calls the driver. If `take` finds no block, the pool obtains a
// page run (`PoolOomStages`) and passes it to `cut`.

#include <cstddef>
#include <span>

#include "memory/pool/central_lists.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/size_class.hpp"
#include "memory/pool/slab.hpp"
#include "memory/pool/wanted_run.hpp"

namespace isthmus {

// Thread-safe: the central lists have locks of their own, one for each shard. No lock of a shard is
// held while a run is allocated from the region heap or returned to it.
class SlabSource {
 public:
  // All arguments must outlive the object. Throws std::bad_alloc.
  SlabSource(const SizeClasses& classes, RegionHeap& regions, RegionSource& source,
             QueueFences& fences);

  // Takes free blocks that the queue may use: from the central lists or, while the free blocks in
  // slabs are only a small part of the memory that the pool holds, from a new slab. Takes at most
  // as many blocks as `out` has elements. Returns the number of blocks; 0 if there is none without
  // growth.
  [[nodiscard]] std::size_t take(unsigned size_class, std::span<void*> out, Queue& queue,
                                 unsigned shard) noexcept;
  // As `take`, from the central lists only.
  [[nodiscard]] std::size_t take_listed(unsigned size_class, std::span<void*> out, Queue& queue,
                                        unsigned shard) noexcept;
  // The shape of the next slab of a class.
  [[nodiscard]] SlabShape next_shape(unsigned size_class) const noexcept;
  // The run for a slab of that shape; it may be so short that it holds a single block.
  [[nodiscard]] WantedRun run_for(const SlabShape& shape, Queue& queue) const noexcept;
  // Makes the run a slab, of `shape` if the run is that long, and takes its first blocks. Returns
  // the number of blocks taken. If the host has no memory for a record of the slab, the run returns
  // to the heap.
  [[nodiscard]] Result<std::size_t> cut(unsigned size_class, const SlabShape& shape,
                                        const RegionHeap::PageRun& run, std::span<void*> out,
                                        unsigned shard) noexcept;
  // Returns blocks that are reusable after `freed`. Slabs that then hold all their blocks return to
  // the run heap.
  void return_blocks(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                     unsigned shard) noexcept;
  // Returns all batches to their slabs, and slabs that hold all their blocks to the run heap.
  void flush() noexcept;
  [[nodiscard]] const CentralLists& lists() const noexcept { return lists_; }
  [[nodiscard]] const SizeClasses& classes() const noexcept { return classes_; }
  // INTERNAL if a slab is inconsistent or a block is listed twice.
  [[nodiscard]] Result<void> verify() noexcept { return lists_.verify(); }

 private:
  [[nodiscard]] std::size_t take_own(unsigned size_class, std::span<void*> out, Queue& queue,
                                     unsigned shard) noexcept;
  [[nodiscard]] std::size_t take_other_shards(unsigned size_class, std::span<void*> out,
                                              Queue& queue, unsigned shard) noexcept;
  // Whether the free blocks in the central lists and one more slab are a small part of the memory
  // that the pool holds: at most 1 / k_spare_divisor.
  [[nodiscard]] bool can_spare_slab(unsigned size_class) const noexcept;
  // Cuts a slab from memory that is free now. Returns 0 if there is no page run.
  [[nodiscard]] std::size_t add_from_free(unsigned size_class, std::span<void*> out, Queue& queue,
                                          unsigned shard) noexcept;
  // Releases slabs that hold all their blocks. `slabs` is a list linked by `next`.
  void release_empty(Slab* slabs) noexcept;

  static constexpr std::size_t k_spare_divisor = 64;

  const SizeClasses& classes_;
  RegionHeap& regions_;
  RegionSource& source_;
  QueueFences& fences_;
  CentralLists lists_;
};

}  // namespace isthmus
