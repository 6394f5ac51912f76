// SPDX-License-Identifier: Apache-2.0
#pragma once
// One arena: superblocks that are divided into blocks, in use and free.
//
// Every byte of a superblock belongs to one block. Free blocks are found by size, those of equal
// size by address; neighbours that one ticket can cover are joined. A free needs no memory: while a
// block is in use it retains its node of the set of free blocks. Not thread-safe: its owner holds
// `lock`.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "memory/cut_areas.hpp"
#include "memory/queue_slots.hpp"

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
    BySize::node_type node;                     // of `free_`, while it is not free
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  // Pre, of all functions: `lock` is held.
  std::mutex lock;

  // Throws std::bad_alloc, without effect.
  void add(Superblock& superblock);
  // Its free blocks become usable by other queues only once `until` has passed.
  void delay_reuse(const Superblock& superblock, Ticket until) noexcept;
  // Null if no free block that is usable by queue entry `slot` is large enough. Throws
  // std::bad_alloc.
  [[nodiscard]] std::byte* allocate(std::size_t nbytes, std::size_t alignment,
                                    QueueSlots::Slot slot, const QueueSlots& slots);
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  // The block that contains `pointer`; of 0 bytes if there is none.
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept;
  // Begins the free of a block; `end_free` completes it. INVALID_ARGUMENT if no live block of the
  // arena begins there.
  [[nodiscard]] Result<Blocks::iterator> begin_free(const void* pointer) noexcept;
  void end_free(Blocks::iterator position, Ticket freed, QueueSlots& slots) noexcept;
  // Joins everything that could not be joined when it was freed and can be now.
  void coalesce(QueueSlots& slots) noexcept;
  // False, without effect, if a block of it is not free or is still in use by work.
  [[nodiscard]] bool remove(Superblock& superblock, const QueueSlots& slots) noexcept;

 private:
  // The end of `blocks_` if no block contains it.
  [[nodiscard]] Blocks::iterator find(const void* pointer) noexcept;
  void split(Blocks::iterator position, std::size_t first);
  [[nodiscard]] bool can_coalesce(Blocks::iterator first, Blocks::iterator second,
                                  const QueueSlots& slots) const noexcept;
  void coalesce(Blocks::iterator first, Blocks::iterator second, QueueSlots& slots) noexcept;

  Blocks blocks_;
  BySize free_;
};

}  // namespace isthmus
