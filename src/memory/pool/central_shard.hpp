// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shard of a size class's central list (central_lists.hpp): batches that thread caches returned,
// and slabs.
//
// A batch moves blocks from a thread that frees to one that allocates, with one lock acquisition on
// each side and without touching their slabs. The batches lie in a fixed array and are limited in
// bytes, so that a free never allocates; blocks beyond that limit return to their slabs. To move a
// batch, the two threads share the first cache line, which holds the lock, and the lines of the
// batch itself. Moving one cache line between cores takes as long as about ten allocations from a
// thread cache.

#include <array>
#include <cstddef>
#include <span>

#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/slab_list.hpp"

namespace isthmus {

// Thread-safe.
class alignas(64) CentralShard {
 public:
  static constexpr std::size_t k_max_batch_blocks = 64;
  static constexpr std::size_t k_max_batches = 8;

  struct Layout {
    QueueFences* fences;
    FreePoison poison;
    std::size_t block_bytes;
    std::size_t batch_blocks;
  };
  CentralShard(const Layout& layout, unsigned number) noexcept;

  // Takes blocks of a batch that the queue of entry `entry` may use now, else blocks of the slabs.
  [[nodiscard]] TakenBlocks take(std::span<void*> out, QueueFences::EntryIndex entry) noexcept;
  // Whether `take` would find a block.
  [[nodiscard]] bool has(QueueFences::EntryIndex entry) noexcept;
  // Stores the blocks as a batch. Returns false, without effect, if they are not a full batch or
  // the shard has no space for another batch.
  [[nodiscard]] bool keep_batch(std::span<void* const> blocks, Ticket freed) noexcept;
  // Whether `keep_batch` would accept that many blocks.
  [[nodiscard]] bool has_room_for(std::size_t blocks) noexcept;
  // The number of blocks of a slab that are in the shard, to which the slab belongs. The caller
  // holds another block of the slab.
  struct Share {
    std::uint32_t blocks;
    Ticket until;
  };
  [[nodiscard]] Share share_of(const Slab& slab) noexcept;
  // Removes a batch, so that the caller can return its blocks to their slabs. Returns the number of
  // blocks; 0 if there is no batch.
  [[nodiscard]] std::size_t take_batch(std::span<void*, k_max_batch_blocks> out,
                                       Ticket& freed) noexcept;
  // Returns blocks to their slabs, up to the first block whose slab belongs to another shard.
  // Returns the number of these blocks. Slabs that now hold all their blocks are removed from the
  // shard and prepended to `empty_slabs`, linked by `next`.
  [[nodiscard]] std::size_t return_blocks(std::span<void* const> blocks, Ticket freed,
                                          Slab*& empty_slabs) noexcept;
  // Removes the slabs of which no block was taken, and prepends them to `empty_slabs`.
  void take_unused_slabs(Slab*& empty_slabs) noexcept;
  // Adds a new slab and takes its first blocks. Returns the number of blocks taken.
  [[nodiscard]] std::size_t add(Slab& slab, std::span<void*> out) noexcept;
  // Fails with INTERNAL if a slab is inconsistent or a block is listed twice.
  [[nodiscard]] Result<void> verify() noexcept;

 private:
  static constexpr std::size_t k_max_bytes = std::size_t{2} << 20;

  struct Batch {
    Ticket freed;
    std::size_t count = 0;
  };
  struct alignas(64) BatchBlocks {
    std::array<void*, k_max_batch_blocks> all{};
  };
  [[nodiscard]] std::span<void* const> blocks_of(std::size_t index) const noexcept
      ISTHMUS_REQUIRES(lock_) {
    return std::span{blocks_.at(index).all}.first(stack_.at(index).count);
  }

  SpinLock lock_;
  std::uint32_t batches_ ISTHMUS_GUARDED_BY(lock_) = 0;
  const std::uint32_t max_batches_;
  const std::uint32_t batch_blocks_;
  const std::uint32_t number_;
  QueueFences* const fences_;
  std::array<Batch, k_max_batches> stack_ ISTHMUS_GUARDED_BY(lock_){};
  std::array<BatchBlocks, k_max_batches> blocks_ ISTHMUS_GUARDED_BY(lock_){};
  SlabList slabs_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
