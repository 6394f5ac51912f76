#pragma once
// The blocks of one size class that no lane has: batches that a lane gave back, then slabs.
//
// Batches let blocks go from a thread that frees to one that allocates without a look at their
// slabs; one lock, for the whole batch. Their number is bounded by bytes, so that a free never
// needs memory: what is too much goes into the slabs. What both threads write for a batch is the
// first line, where the lock is, and the batch's own: each line that goes from one to the other is
// as long on its way as some ten warm allocations take.

#include <array>
#include <atomic>
#include <cstddef>
#include <span>

#include "core/spin_lock.hpp"
#include "memory/slab_list.hpp"

namespace isthmus {

// Safe for threads.
class alignas(64) central_list {
 public:
  static constexpr std::size_t k_most_in_batch = 64;

  // Before anything else.
  void lay_out(queue_slots& slots, free_poison poison, std::size_t block_bytes,
               std::size_t in_batch) noexcept;

  // Of a batch that is good for the queue in slot `whom` if there is one, else of the slabs; 0 if a
  // slab has to be added first.
  [[nodiscard]] std::size_t take(std::span<void*> out, queue_slots::slot whom) noexcept;
  // The slabs that have all their blocks now, as a list by `after`: they go back to the run heap.
  [[nodiscard]] slab* give(std::span<void* const> blocks, ticket freed) noexcept;
  // All batches into their slabs; what `give` gives, and slabs that nobody took a block of.
  [[nodiscard]] slab* flush() noexcept;
  // Takes the first blocks of a slab just made, and adds it.
  [[nodiscard]] std::size_t add(slab& made, std::span<void*> out) noexcept;
  // As they were a moment ago.
  [[nodiscard]] std::uint32_t slabs() const noexcept {
    return slab_count_.load(std::memory_order_relaxed);
  }
  // INTERNAL for a slab that contradicts itself, or a block in two places.
  [[nodiscard]] result<void> verify() noexcept;

 private:
  static constexpr std::size_t k_most_batches = 8;
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
  [[nodiscard]] slab* put_into_slabs(std::span<void* const> blocks, ticket freed) noexcept;

  spin_lock lock_;
  std::uint32_t batches_ = 0;
  std::uint32_t most_ = 0;
  std::uint32_t batch_ = 0;  // blocks in one
  queue_slots* slots_ = nullptr;
  std::array<batch, k_most_batches> stack_{};
  std::array<batch_blocks, k_most_batches> blocks_{};
  slab_list slabs_;
  std::atomic<std::uint32_t> slab_count_{0};  // changed under the lock
};

}  // namespace isthmus
