#pragma once
// A shard of a size class's central list (central_lists.hpp): batches that lanes gave back, and
// slabs.
//
// Batches let blocks go from a thread that frees to one that allocates without a look at their
// slabs; one lock, for the whole batch. Their number is bounded by bytes, so that a free never
// needs memory: what is too much goes into the slabs. What both threads write for a batch is the
// first line, where the lock is, and the batch's own: each line that goes from one to the other is
// as long on its way as some ten warm allocations take.

#include <array>
#include <cstddef>
#include <span>

#include "core/spin_lock.hpp"
#include "memory/slab_list.hpp"

namespace isthmus {

// Safe for threads.
class alignas(64) central_shard {
 public:
  static constexpr std::size_t k_most_in_batch = 64;
  static constexpr std::size_t k_most_batches = 8;

  struct layout {
    queue_slots* slots;
    free_poison poison;
    std::size_t block_bytes;
    std::size_t in_batch;  // blocks
  };
  central_shard(const layout& how, unsigned number) noexcept;

  // Of a batch that is good for the queue in slot `whom` if there is one, else of the slabs; 0 if
  // there is none.
  [[nodiscard]] std::size_t take(std::span<void*> out, queue_slots::slot whom) noexcept;
  // Whether `take` would find any.
  [[nodiscard]] bool has(queue_slots::slot whom) noexcept;
  // False where it is no whole batch, or there are enough.
  [[nodiscard]] bool keep_batch(std::span<void* const> blocks, ticket freed) noexcept;
  // Whether it would keep so many.
  [[nodiscard]] bool has_room_for(std::size_t blocks) noexcept;
  // The blocks of a slab that are in it. Pre: it is this shard's, and the caller has one of the
  // others.
  struct share {
    std::uint32_t blocks;
    ticket until;
  };
  [[nodiscard]] share share_of(const slab& of) noexcept;
  // A batch to be put into slabs, as many as `out` then has; 0 if there is none.
  [[nodiscard]] std::size_t take_batch(std::span<void*, k_most_in_batch> out,
                                       ticket& freed) noexcept;
  // Puts blocks into their slabs up to the first whose slab is another shard's; how many. Slabs
  // that have all their blocks now leave the list for `whole`, by `after`.
  [[nodiscard]] std::size_t give(std::span<void* const> blocks, ticket freed,
                                 slab*& whole) noexcept;
  // The same for slabs that nobody took a block of.
  void take_untouched(slab*& whole) noexcept;
  // Takes the first blocks of a slab just made, and adds it.
  [[nodiscard]] std::size_t add(slab& made, std::span<void*> out) noexcept;
  // INTERNAL for a slab that contradicts itself, or a block in two places.
  [[nodiscard]] result<void> verify() noexcept;

 private:
  static constexpr std::size_t k_most_bytes = std::size_t{2} << 20;

  struct batch {
    ticket freed;
    std::size_t count = 0;
  };
  struct alignas(64) batch_blocks {
    std::array<void*, k_most_in_batch> all{};
  };
  [[nodiscard]] std::span<void* const> blocks_of(std::size_t which) const noexcept {
    return std::span{blocks_.at(which).all}.first(stack_.at(which).count);
  }

  spin_lock lock_;
  std::uint32_t batches_ = 0;
  const std::uint32_t most_;
  const std::uint32_t batch_;  // blocks in one
  const std::uint32_t number_;
  queue_slots* const slots_;
  std::array<batch, k_most_batches> stack_{};
  std::array<batch_blocks, k_most_batches> blocks_{};
  slab_list slabs_;
};

}  // namespace isthmus
