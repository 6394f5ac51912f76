// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shard of a size class's central list (central_lists.hpp): batches that thread caches returned,
// and slabs.
//
// A batch moves blocks from a thread that frees to one that allocates, with one lock acquisition on
// each side and without touching their slabs. The batches lie in a fixed array and are limited in
// bytes, so that a free never needs memory; further blocks return to their slabs. For a batch the
// two threads share the first cache line, which holds the lock, and the lines of the batch itself.
// Moving one cache line between cores takes as long as about ten allocations from a thread cache.

#include <array>
#include <cstddef>
#include <span>

#include "core/spin_lock.hpp"
#include "memory/slab_list.hpp"

namespace isthmus {

// Thread-safe: one spin lock guards all fields below it.
class alignas(64) CentralShard {
 public:
  static constexpr std::size_t k_max_batch_blocks = 64;
  static constexpr std::size_t k_max_batches = 8;

  struct Layout {
    QueueSlots* slots;
    FreePoison poison;
    std::size_t block_bytes;
    std::size_t batch_blocks;
  };
  CentralShard(const Layout& layout, unsigned number) noexcept;

  // Takes blocks of a batch that the queue of entry `slot` may use now, else blocks of the slabs.
  // Returns how many; 0 if there are none.
  [[nodiscard]] std::size_t take(std::span<void*> out, QueueSlots::Slot slot) noexcept;
  // Whether `take` would find a block.
  [[nodiscard]] bool has(QueueSlots::Slot slot) noexcept;
  // Returns false, without effect, if the blocks are not a full batch or there are enough batches.
  [[nodiscard]] bool keep_batch(std::span<void* const> blocks, Ticket freed) noexcept;
  // Whether `keep_batch` would keep so many blocks.
  [[nodiscard]] bool has_room_for(std::size_t blocks) noexcept;
  // How many blocks of a slab are in the shard. Precondition: the slab is of this shard, and the
  // caller holds another block of it.
  struct Share {
    std::uint32_t blocks;
    Ticket until;
  };
  [[nodiscard]] Share share_of(const Slab& slab) noexcept;
  // Takes a batch whose blocks are to be returned to slabs. Returns the number of blocks; 0 if
  // there is no batch.
  [[nodiscard]] std::size_t take_batch(std::span<void*, k_max_batch_blocks> out,
                                       Ticket& freed) noexcept;
  // Returns blocks to their slabs, up to the first block whose slab is of another shard. Returns
  // how many. Slabs that now have all their blocks leave the shard and are prepended to
  // `empty_slabs`, linked by `next`.
  [[nodiscard]] std::size_t return_blocks(std::span<void* const> blocks, Ticket freed,
                                          Slab*& empty_slabs) noexcept;
  // As `return_blocks`, for slabs of which no block was taken.
  void take_unused_slabs(Slab*& empty_slabs) noexcept;
  // Adds a new slab and takes its first blocks. Returns how many.
  [[nodiscard]] std::size_t add(Slab& slab, std::span<void*> out) noexcept;
  // INTERNAL if a slab is inconsistent or a block is in two places.
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
  [[nodiscard]] std::span<void* const> blocks_of(std::size_t index) const noexcept {
    return std::span{blocks_.at(index).all}.first(stack_.at(index).count);
  }

  SpinLock lock_;
  std::uint32_t batches_ = 0;
  const std::uint32_t max_batches_;
  const std::uint32_t batch_blocks_;
  const std::uint32_t number_;
  QueueSlots* const slots_;
  std::array<Batch, k_max_batches> stack_{};
  std::array<BatchBlocks, k_max_batches> blocks_{};
  SlabList slabs_;
};

}  // namespace isthmus
