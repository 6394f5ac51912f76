#pragma once
// Blocks of one size, cut from slabs.
//
// Choose it where all blocks have one size: none is rounded up, and a slab has no other's. What was
// freed behind work on a queue lies in that queue's list, the last one on top, and is good there at
// once; elsewhere once its ticket has passed (queue_slots.hpp), the oldest first. Each block keeps
// its own ticket, so that nothing is forgotten where lists are looked through. One lock, held over
// no call of upstream's; a free finds its slab by a search among their addresses and needs no
// memory.

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/adaptors/keeping_resource.hpp"

namespace isthmus {

class fixed_size_resource final : public keeping_resource {
 public:
  // Pre: `check_upstream`; both numbers above 0, and their product fits a size.
  fixed_size_resource(memory_resource& upstream, std::size_t block_bytes, std::size_t in_slab);

  static constexpr std::size_t k_usual_bytes = std::size_t{1} << 20;  // of a slab
  static constexpr std::size_t k_least_blocks = 8;

  // INVALID_ARGUMENT for what is larger than a block, or aligned to more than blocks are.
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // INVALID_ARGUMENT for what is no block, lies inside one, or was freed before.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] cut_block block_at(const void* pointer) noexcept override;

 private:
  struct slab;
  struct block {
    slab* in = nullptr;
    ticket freed;
    block* next = nullptr;  // freed before
    block* previous = nullptr;
    bool live = false;
  };
  struct slab {
    chunk memory;
    std::vector<block> blocks;
    std::size_t out = 0;  // of them, in no list
  };
  // Free blocks of one slot, the last one that was freed first. The last list is of all slots from
  // there on.
  static constexpr std::size_t k_lists = 1024;
  struct list {
    block* first = nullptr;
    block* last = nullptr;
  };
  using slabs = std::vector<std::unique_ptr<slab>>;

  ~fixed_size_resource() override = default;
  std::size_t give_back_whole() noexcept override {
    return take_whole().size() * block_bytes_ * in_slab_;
  }
  [[nodiscard]] bool has_chunks() const noexcept override { return !slabs_.empty(); }
  [[nodiscard]] result<void> check_request(std::size_t nbytes, std::size_t alignment) const;
  // Of a new slab, whose other blocks are free.
  [[nodiscard]] result<void*> take_of_new(queue& on);
  // Slabs of which no block is out, and that nothing uses any more.
  [[nodiscard]] slabs take_whole() noexcept;

  // Pre for these: `lock_` is held.
  [[nodiscard]] slab* slab_of(const void* pointer) noexcept;
  [[nodiscard]] result<block*> live_block_at(const void* pointer) noexcept;
  [[nodiscard]] static std::size_t list_of(queue_slots::slot slot) noexcept {
    return std::min<std::size_t>(slot, k_lists - 1);
  }
  [[nodiscard]] block* take(queue_slots::slot whom) noexcept;
  void put(block& freed) noexcept;
  void remove(block& gone) noexcept;
  [[nodiscard]] bool is_whole(const slab& of) const noexcept;

  [[nodiscard]] void* address_of(const block& which) const noexcept;

  const std::size_t asked_bytes_;
  const std::size_t block_bytes_;
  const std::size_t in_slab_;
  const std::size_t alignment_;
  std::mutex lock_;
  slabs slabs_;  // by address
  std::array<list, k_lists> lists_{};
  std::size_t used_lists_ = 0;  // those behind were never put into
  std::size_t free_ = 0;        // blocks in lists
};

}  // namespace isthmus
