// SPDX-License-Identifier: Apache-2.0
#pragma once
// One arena: a set of superblocks, each divided into live and free blocks.
//
// Every byte of a superblock belongs to one block. Free blocks are sorted by size, and by address
// among equal sizes. Adjacent free blocks are joined if one ticket can cover both. A free needs no
// memory, because a block that is not free owns its node of the set of free blocks. Not
// thread-safe: the caller holds `lock` during each call.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/queue_fences.hpp"
#include "memory/records/cut_areas.hpp"

namespace isthmus {

class alignas(64) Arena {
 public:
  struct Superblock {
    CutChunk memory;
    Arena* arena = nullptr;
    std::size_t live_bytes = 0;  // bytes in blocks that are not free

    [[nodiscard]] std::byte* base() const noexcept {
      return static_cast<std::byte*>(memory->facts().base);
    }
    [[nodiscard]] std::size_t nbytes() const noexcept { return memory->facts().nbytes; }
  };

  struct Block;
  struct Smaller {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const noexcept;
    bool operator()(const Block* a, std::size_t nbytes) const noexcept;
  };
  using BySize = std::set<Block*, Smaller>;
  struct Block {
    Superblock* superblock = nullptr;
    std::byte* begin = nullptr;
    std::size_t nbytes = 0;
    Ticket freed;
    enum { free, live, freeing } state = free;  // freeing: its ticket is being obtained
    BySize::node_type node;                     // its node of `free_`, while it is not free
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  Mutex lock;

  // Adds the superblock as one free block. Throws std::bad_alloc, without effect.
  void add(Superblock& superblock) ISTHMUS_REQUIRES(lock);
  // Other queues can use the superblock's free blocks only once `until` has passed.
  void delay_reuse(const Superblock& superblock, Ticket until) noexcept ISTHMUS_REQUIRES(lock);
  // Returns null if no sufficiently large free block is usable by the queue of `entry`. Throws
  // std::bad_alloc.
  [[nodiscard]] std::byte* allocate(std::size_t nbytes, std::size_t alignment,
                                    QueueFences::EntryIndex entry, const QueueFences& fences)
      ISTHMUS_REQUIRES(lock);
  [[nodiscard]] bool has_free() const noexcept ISTHMUS_REQUIRES(lock) { return !free_.empty(); }
  // The block that contains `pointer`. If there is none, the result has 0 bytes.
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept ISTHMUS_REQUIRES(lock);
  // Begins freeing the block at `pointer`; `end_free` completes it. INVALID_ARGUMENT if no live
  // block of the arena begins at that address.
  [[nodiscard]] Result<Blocks::iterator> begin_free(const void* pointer) noexcept
      ISTHMUS_REQUIRES(lock);
  void end_free(Blocks::iterator position, Ticket freed, QueueFences& fences) noexcept
      ISTHMUS_REQUIRES(lock);
  // Joins adjacent free blocks whose tickets can be joined now, but could not when the blocks were
  // freed.
  void coalesce(QueueFences& fences) noexcept ISTHMUS_REQUIRES(lock);
  // Removes the superblock. Returns false, without effect, if any of its blocks is not free or is
  // still used by work.
  [[nodiscard]] bool remove(Superblock& superblock, const QueueFences& fences) noexcept
      ISTHMUS_REQUIRES(lock);

 private:
  // Finds the block that contains `pointer`. Returns the end of `blocks_` if there is none.
  [[nodiscard]] Blocks::iterator find(const void* pointer) noexcept ISTHMUS_REQUIRES(lock);
  void split(Blocks::iterator position, std::size_t first) ISTHMUS_REQUIRES(lock);
  [[nodiscard]] bool can_coalesce(Blocks::iterator first, Blocks::iterator second,
                                  const QueueFences& fences) const noexcept ISTHMUS_REQUIRES(lock);
  void coalesce(Blocks::iterator first, Blocks::iterator second, QueueFences& fences) noexcept
      ISTHMUS_REQUIRES(lock);

  Blocks blocks_ ISTHMUS_GUARDED_BY(lock);
  BySize free_ ISTHMUS_GUARDED_BY(lock);
};

}  // namespace isthmus
