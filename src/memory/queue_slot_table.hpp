#pragma once
// The slots of a pool's queues, found by the queue's serial number at a cost that does not grow
// with the number of queues.
//
// Slots lie in chunks that are allocated as queues are added: a pool with few queues takes 16 KiB.
// Slots whose serial numbers share their last ten bits form a chain, which readers follow without a
// lock. A slot that is reassigned meanwhile may lead a reader into another chain, whose end it
// takes for the end of its own: a caller that finds nothing searches again under the lock.

#include <array>
#include <atomic>
#include <cstdint>

#include "backend/queue.hpp"

namespace isthmus {

struct alignas(64) queue_slot {
  std::atomic<std::uint64_t> serial{0};  // the queue's; 0: never used
  std::atomic<std::uint64_t> wanted{0};  // the highest number given out
  std::atomic<std::uint64_t> issued{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint32_t> lanes{0};
  std::atomic<std::uint32_t> next{0};  // in its chain; 0: the last
  ref<queue> on;
  // Under the lock: the fence submitted last, and its number.
  ref<event> fence;
  std::uint64_t fence_number = 0;
};

// Its writers hold their lock; `find` and access to slots below `used()` need none.
class queue_slot_table {
 public:
  using index = std::uint32_t;
  static constexpr index k_none = 0;
  static constexpr index k_max = (1U << 16) - 1;

  // `reserved` slots belong to no queue.
  explicit queue_slot_table(index reserved) noexcept : used_{reserved} {}
  ~queue_slot_table();
  queue_slot_table(const queue_slot_table&) = delete;
  queue_slot_table& operator=(const queue_slot_table&) = delete;

  [[nodiscard]] queue_slot& operator[](index slot) noexcept {
    return chunk_of(slot)[slot % k_chunk];
  }
  [[nodiscard]] const queue_slot& operator[](index slot) const noexcept {
    return chunk_of(slot)[slot % k_chunk];
  }
  [[nodiscard]] index used() const noexcept { return used_.load(std::memory_order_acquire); }

  // The slot of the queue with that number; k_none may be wrong without the lock.
  [[nodiscard]] index find(std::uint64_t serial) const noexcept;
  // One more slot, which no queue has yet. k_none at `k_max`, or where the host has no memory.
  [[nodiscard]] index add() noexcept;
  // The slot is the queue's from here on, and no longer another's. Pre: no other slot is.
  void assign(index slot, std::uint64_t serial) noexcept;

 private:
  static constexpr index k_chunk = 64;
  static constexpr index k_chains = 1024;
  using chunk = std::array<queue_slot, k_chunk>;

  [[nodiscard]] chunk& chunk_of(index slot) const noexcept {
    return *chunks_[slot / k_chunk].load(std::memory_order_acquire);
  }
  [[nodiscard]] std::atomic<index>& chain_of(std::uint64_t serial) noexcept {
    return chains_[serial % k_chains];
  }
  void unlink(index slot) noexcept;

  chunk first_;
  std::array<std::atomic<chunk*>, (k_max + k_chunk) / k_chunk> chunks_{&first_};
  std::array<std::atomic<index>, k_chains> chains_{};
  std::atomic<index> used_;
};

}  // namespace isthmus
