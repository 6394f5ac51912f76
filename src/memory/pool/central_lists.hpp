// SPDX-License-Identifier: Apache-2.0
#pragma once
// The free blocks of a pool that no thread cache holds: a list for each size class, divided into
// shards.
//
// Each thread uses one shard, so that threads that allocate and free a lot do not contend for one
// lock, and each mostly gets blocks of slabs that it alone uses. A thread whose shard has no block
// takes blocks from the other shards. However, if the free blocks in slabs are only a small part of
// the pool's memory, the thread first tries to get a new slab, since threads that use blocks of one
// slab alternately write the same cache lines. A block returns to the shard of its slab, a batch to
// the shard of the thread that freed it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "memory/pool/central_shard.hpp"
#include "memory/pool/size_class.hpp"

namespace isthmus {

// Thread-safe: each shard has its own lock (central_shard.hpp); the counters are atomic.
class CentralLists {
 public:
  static constexpr unsigned k_shards = 16;

  // `in_batch(block_bytes)` returns the number of blocks in a batch. Throws std::bad_alloc.
  template <class InBatch>
  CentralLists(QueueFences& fences, FreePoison poison, const SizeClasses& classes,
               InBatch&& in_batch)
      : count_{classes.count()} {
    for (unsigned size_class = 0; size_class < count_; ++size_class) {
      const auto nbytes = classes.bytes_of(size_class);
      classes_.at(size_class).init({&fences, poison, nbytes, in_batch(nbytes)});
    }
  }

  // Takes blocks from `shard` that the queue of entry `entry` may use now.
  [[nodiscard]] TakenBlocks take_own(unsigned size_class, std::span<void*> out,
                                     QueueFences::EntryIndex entry, unsigned shard) noexcept;
  // As `take_own`, from the shards other than `shard`.
  [[nodiscard]] TakenBlocks take_other_shards(unsigned size_class, std::span<void*> out,
                                              QueueFences::EntryIndex entry,
                                              unsigned shard) noexcept;
  // Whether `take_own` or `take_other_shards` would find a block.
  [[nodiscard]] bool has(unsigned size_class, QueueFences::EntryIndex entry) const noexcept;
  // Whether `return_blocks` would store that many blocks as a batch instead of returning them to
  // their slabs.
  [[nodiscard]] bool would_keep(unsigned size_class, std::size_t blocks,
                                unsigned shard) const noexcept {
    return classes_.at(size_class).at(shard).has_room_for(blocks);
  }
  // The number of blocks of a slab that are in the list. The caller holds another block of the
  // slab, so that the slab is not released.
  [[nodiscard]] CentralShard::Share share_of(unsigned size_class, const Slab& slab) const noexcept {
    return classes_.at(size_class).at(slab.shard).share_of(slab);
  }
  // Returns blocks to the list. The result is a list, linked by `next`, of the slabs that now hold
  // all their blocks; the caller returns them to the run heap.
  [[nodiscard]] Slab* return_blocks(unsigned size_class, std::span<void* const> blocks,
                                    Ticket freed, unsigned shard) noexcept;
  // Adds a new slab and takes its first blocks. Returns the number of blocks taken.
  [[nodiscard]] std::size_t add(unsigned size_class, Slab& slab, std::span<void*> out,
                                unsigned shard) noexcept;
  // Returns the blocks of all batches to their slabs. The result is as for `return_blocks`, but
  // also contains the slabs of which no block was taken.
  [[nodiscard]] Slab* flush(unsigned size_class) noexcept;
  // The number of slabs of that class. May be out of date when it returns.
  [[nodiscard]] std::uint32_t slabs(unsigned size_class) const noexcept {
    return classes_[size_class].slabs.load(std::memory_order_relaxed);
  }
  // The bytes of all blocks in the lists. May be out of date when it returns.
  [[nodiscard]] std::size_t free_bytes() const noexcept;
  // Fails with INTERNAL if a slab is inconsistent or a block is listed twice.
  [[nodiscard]] Result<void> verify() noexcept;

 private:
  struct ClassLists {
    ClassLists() noexcept = default;
    ClassLists(const ClassLists&) = delete;
    ClassLists& operator=(const ClassLists&) = delete;
    ~ClassLists();

    void init(const CentralShard::Layout& new_layout);
    // Null if no thread has used that shard yet.
    [[nodiscard]] CentralShard* find(unsigned shard) const noexcept {
      return shards[shard].load(std::memory_order_acquire);
    }
    // As `find`, but returns the first shard, which always exists, instead of null.
    [[nodiscard]] CentralShard& at(unsigned shard) const noexcept {
      auto* const found = find(shard);
      return found != nullptr ? *found : *find(0);
    }
    // Creates the shard if necessary. Returns the first shard if there is no host memory for that.
    [[nodiscard]] CentralShard& open(unsigned shard) noexcept;
    [[nodiscard]] Slab* return_to_slabs(std::span<void* const> blocks, Ticket freed,
                                        Slab* empty_slabs) const noexcept;

    std::array<std::atomic<CentralShard*>, k_shards> shards{};
    CentralShard::Layout layout{};
    std::atomic<std::uint32_t> slabs{0};
  };
  // Bytes added minus bytes taken by the threads of one shard. A single account may be negative;
  // the sum of all accounts is the number of bytes in the lists.
  struct alignas(64) Account {
    std::atomic<std::int64_t> bytes{0};
  };

  void count(unsigned size_class, std::int64_t blocks, unsigned shard) noexcept {
    const auto nbytes = static_cast<std::int64_t>(classes_[size_class].layout.block_bytes);
    accounts_[shard].bytes.fetch_add(blocks * nbytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Slab* count_removed(unsigned size_class, Slab* empty_slabs,
                                    unsigned shard) noexcept;

  const unsigned count_;
  std::array<ClassLists, SizeClasses::k_max_count> classes_;
  std::array<Account, k_shards> accounts_{};
};

}  // namespace isthmus
