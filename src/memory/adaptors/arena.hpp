// SPDX-License-Identifier: Apache-2.0
#pragma once
// One arena: superblocks that are divided into blocks, in use and free.
//
// Every byte of a superblock belongs to one block. Free blocks are found by size, those of equal
// size by address; neighbours that one ticket can stand for are joined. A free needs no memory:
// while a block is in use it keeps its node of the set of free blocks. Not thread-safe: its owner
// holds `lock`.

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
    Arena* home = nullptr;
    std::size_t out = 0;  // bytes in blocks that are not free

    [[nodiscard]] std::byte* base() const noexcept {
      return static_cast<std::byte*>(memory->what().base);
    }
    [[nodiscard]] std::size_t nbytes() const noexcept { return memory->what().nbytes; }
  };

  struct Block;
  struct Smaller {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const noexcept;
    bool operator()(const Block* a, std::size_t nbytes) const noexcept;
  };
  using BySize = std::set<Block*, Smaller>;
  struct Block {
    Superblock* in = nullptr;
    std::byte* begin = nullptr;
    std::size_t nbytes = 0;
    Ticket freed;
    enum { free, live, leaving } state = free;  // leaving: its ticket is being obtained
    BySize::node_type place;                    // of `free_`, while it is not free
  };
  using Blocks = std::map<std::uintptr_t, Block>;

  // Pre, of all functions: `lock` is held.
  std::mutex lock;

  // Throws std::bad_alloc, without effect.
  void add(Superblock& whole);
  // Makes what is free of it usable by other queues only once `until` has passed.
  void hold_back(const Superblock& in, Ticket until) noexcept;
  // Null if no free block that is usable by queue entry `slot` is large enough. Throws
  // std::bad_alloc.
  [[nodiscard]] std::byte* take(std::size_t nbytes, std::size_t alignment, QueueSlots::Slot slot,
                                const QueueSlots& slots);
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  // The block that contains `pointer`; of 0 bytes if there is none.
  [[nodiscard]] CutBlock block_at(const void* pointer) noexcept;
  // Begins the free of a block; `end_free` completes it. INVALID_ARGUMENT if no live block of the
  // arena begins there.
  [[nodiscard]] Result<Blocks::iterator> begin_free(const void* pointer) noexcept;
  void end_free(Blocks::iterator gone, Ticket freed, QueueSlots& slots) noexcept;
  // Joins everything that could not be joined when it was freed and can be now.
  void join(QueueSlots& slots) noexcept;
  // False, without effect, if a block of it is not free or is still in use by work.
  [[nodiscard]] bool remove(Superblock& whole, const QueueSlots& slots) noexcept;

 private:
  // The end of `blocks_` if no block contains it.
  [[nodiscard]] Blocks::iterator find(const void* pointer) noexcept;
  void split(Blocks::iterator whole, std::size_t first);
  [[nodiscard]] bool can_join(Blocks::iterator first, Blocks::iterator second,
                              const QueueSlots& slots) const noexcept;
  void join(Blocks::iterator first, Blocks::iterator second, QueueSlots& slots) noexcept;

  Blocks blocks_;
  BySize free_;
};

}  // namespace isthmus
