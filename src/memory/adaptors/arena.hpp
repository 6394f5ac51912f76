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

class alignas(64) arena {
 public:
  struct superblock {
    cut_chunk memory;
    arena* home = nullptr;
    std::size_t out = 0;  // bytes in blocks that are not free

    [[nodiscard]] std::byte* base() const noexcept {
      return static_cast<std::byte*>(memory->what().base);
    }
    [[nodiscard]] std::size_t nbytes() const noexcept { return memory->what().nbytes; }
  };

  struct block;
  struct smaller {
    using is_transparent = void;
    bool operator()(const block* a, const block* b) const noexcept;
    bool operator()(const block* a, std::size_t nbytes) const noexcept;
  };
  using by_size = std::set<block*, smaller>;
  struct block {
    superblock* in = nullptr;
    std::byte* begin = nullptr;
    std::size_t nbytes = 0;
    ticket freed;
    enum { free, live, leaving } state = free;  // leaving: its ticket is being obtained
    by_size::node_type place;                   // of `free_`, while it is not free
  };
  using blocks = std::map<std::uintptr_t, block>;

  // Pre, of all functions: `lock` is held.
  std::mutex lock;

  // Throws std::bad_alloc, without effect.
  void add(superblock& whole);
  // Makes what is free of it usable by other queues only once `until` has passed.
  void hold_back(const superblock& in, ticket until) noexcept;
  // Null if no free block that is usable by queue entry `whom` is large enough. Throws
  // std::bad_alloc.
  [[nodiscard]] std::byte* take(std::size_t nbytes, std::size_t alignment, queue_slots::slot whom,
                                const queue_slots& slots);
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  // The block that contains `pointer`; of 0 bytes if there is none.
  [[nodiscard]] cut_block block_at(const void* pointer) noexcept;
  // Begins the free of a block; `end_free` completes it. INVALID_ARGUMENT if no live block of the
  // arena begins there.
  [[nodiscard]] result<blocks::iterator> begin_free(const void* pointer) noexcept;
  void end_free(blocks::iterator gone, ticket freed, queue_slots& slots) noexcept;
  // Joins everything that could not be joined when it was freed and can be now.
  void join(queue_slots& slots) noexcept;
  // False, without effect, if a block of it is not free or is still in use by work.
  [[nodiscard]] bool remove(superblock& whole, const queue_slots& slots) noexcept;

 private:
  // The end of `blocks_` if no block contains it.
  [[nodiscard]] blocks::iterator find(const void* pointer) noexcept;
  void split(blocks::iterator whole, std::size_t first);
  [[nodiscard]] bool can_join(blocks::iterator first, blocks::iterator second,
                              const queue_slots& slots) const noexcept;
  void join(blocks::iterator first, blocks::iterator second, queue_slots& slots) noexcept;

  blocks blocks_;
  by_size free_;
};

}  // namespace isthmus
