// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sub-allocates blocks of one size from slabs.
//
// Use it if all blocks have the same size: no request is rounded up to a size class, and a slab has
// no blocks of other sizes. A block that was freed on a queue is in the list of that queue, most
// recently freed first. That queue can reuse it immediately. Other queues can reuse it once its
// ticket has passed (queue_fences.hpp), the oldest block first. Each block has its own ticket, so
// that no ticket is lost when lists are searched. There is one lock, which is not held while
// upstream is called. A free searches the slabs by address for the slab of its block, and needs no
// memory.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/resources/retaining_resource.hpp"

namespace isthmus {

class FixedSizeResource final : public RetainingResource {
 public:
  // Call `check_upstream` first.
  FixedSizeResource(MemoryResource& upstream, std::size_t block_bytes, std::size_t slab_blocks);

  static constexpr std::size_t k_default_bytes = std::size_t{1} << 20;  // of a slab
  static constexpr std::size_t k_min_blocks = 8;

  // INVALID_ARGUMENT for a request that is larger than a block, or whose alignment exceeds that of
  // the blocks.
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // INVALID_ARGUMENT if `pointer` is not a block of this resource, lies inside one, or was freed
  // before.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept override;

 private:
  struct Slab;
  struct Block {
    Slab* slab = nullptr;
    Ticket freed;
    Block* next = nullptr;  // freed before this one
    Block* previous = nullptr;
    bool live = false;
  };
  struct Slab {
    Chunk memory;
    std::vector<Block> blocks;
    std::size_t live_blocks = 0;  // blocks that are in no list
  };
  // The number of lists of free blocks. Each list belongs to one queue entry, the last one to all
  // remaining entries. The most recently freed block comes first.
  static constexpr std::size_t k_lists = 1024;
  struct List {
    Block* first = nullptr;
    Block* last = nullptr;
  };
  using Slabs = std::vector<std::unique_ptr<Slab>>;

  ~FixedSizeResource() override = default;
  std::size_t release_free_chunks() noexcept override {
    return extract_free_slabs().size() * block_bytes_ * slab_blocks_;
  }
  [[nodiscard]] bool has_chunks() const noexcept override ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    return !slabs_.empty();
  }
  [[nodiscard]] Result<void> check_request(std::size_t nbytes, std::size_t alignment) const;
  // Returns a block of a new slab, whose other blocks become free.
  [[nodiscard]] Result<void*> allocate_from_new(Queue& queue);
  // Removes and returns the slabs whose blocks are all free and no longer used by work.
  [[nodiscard]] Slabs extract_free_slabs() noexcept;

  [[nodiscard]] Slab* slab_of(const void* pointer) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Result<Block*> live_block_at(const void* pointer) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] static std::size_t list_of(QueueFences::EntryIndex entry) noexcept {
    return std::min<std::size_t>(entry, k_lists - 1);
  }
  [[nodiscard]] Block* take_free_block(QueueFences::EntryIndex entry) noexcept
      ISTHMUS_REQUIRES(lock_);
  void push_free(Block& block) noexcept ISTHMUS_REQUIRES(lock_);
  void remove(Block& block) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] bool is_free(const Slab& slab) const noexcept ISTHMUS_REQUIRES(lock_);

  [[nodiscard]] void* address_of(const Block& block) const noexcept;

  const std::size_t requested_bytes_;
  const std::size_t block_bytes_;
  const std::size_t slab_blocks_;
  const std::size_t alignment_;
  Mutex lock_;
  Slabs slabs_ ISTHMUS_GUARDED_BY(lock_);  // sorted by address
  std::array<List, k_lists> lists_ ISTHMUS_GUARDED_BY(lock_){};
  // Lists from this number on were never used.
  std::size_t used_lists_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::size_t free_ ISTHMUS_GUARDED_BY(lock_) = 0;  // blocks in lists
};

}  // namespace isthmus
