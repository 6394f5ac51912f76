#pragma once
// One arena: superblocks, and the blocks that they are cut into, in use and free.
//
// Every byte of a superblock is in one block. Free ones are found by size, among equals by address;
// neighbours that one ticket can stand for are joined. A free needs no memory: a block keeps its
// place among the free ones while it is out. Locked by its owner.

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
    std::size_t out = 0;  // bytes that are in no free block

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
    enum { free, live, leaving } state = free;  // leaving: its ticket is being taken
    by_size::node_type place;                   // while it is not free
  };
  using blocks = std::map<std::uintptr_t, block>;

  // Pre for all of these: `lock` is held.
  std::mutex lock;

  // Throws std::bad_alloc, and then the arena is as it was.
  void add(superblock& whole);
  // What is free of it is good for others only when `until` has passed.
  void hold_back(const superblock& in, ticket until) noexcept;
  // Null where no free block that is good for `whom` has the room. Throws std::bad_alloc.
  [[nodiscard]] std::byte* take(std::size_t nbytes, std::size_t alignment, queue_slots::slot whom,
                                const queue_slots& slots);
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty(); }
  // The block that holds `pointer`; of no bytes where none does.
  [[nodiscard]] cut_block block_at(const void* pointer) noexcept;
  // INVALID_ARGUMENT for what is no live block of these.
  [[nodiscard]] result<blocks::iterator> begin_free(const void* pointer) noexcept;
  void end_free(blocks::iterator gone, ticket freed, queue_slots& slots) noexcept;
  // All that could not be joined when it was freed, and can now.
  void join(queue_slots& slots) noexcept;
  // False where a block of it is out, or something still uses it.
  [[nodiscard]] bool remove(superblock& whole, const queue_slots& slots) noexcept;

 private:
  // The end of the table where no block holds it.
  [[nodiscard]] blocks::iterator find(const void* pointer) noexcept;
  void split(blocks::iterator whole, std::size_t first);
  [[nodiscard]] bool can_join(blocks::iterator first, blocks::iterator second,
                              const queue_slots& slots) const noexcept;
  void join(blocks::iterator first, blocks::iterator second, queue_slots& slots) noexcept;

  blocks blocks_;
  by_size free_;
};

}  // namespace isthmus
