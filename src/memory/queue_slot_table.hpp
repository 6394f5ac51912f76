// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries (`queue_slot`) of a pool's queues, found by the queue's serial number at a cost that
// does not grow with the number of queues.
//
// Entries are allocated in blocks of 64 as queues are added: the table of a pool with few queues
// takes 16 KiB. Entries whose serial numbers have the same last ten bits form a chain, which
// readers follow without a lock: links and serial numbers are stored with release and loaded with
// acquire. An entry that is reassigned meanwhile may lead a reader into another chain, at whose end
// the reader stops. So a search without the lock may miss an entry, and is then repeated under the
// lock.

#include <array>
#include <atomic>
#include <cstdint>

#include "backend/queue.hpp"

namespace isthmus {

// The fences of a queue are numbered from 1 on. `issued` is raised before the fence is submitted to
// the driver, `done` after it has completed. A ticket has the number issued + 1 of the moment of
// the free, so `wanted` > `issued` means that a fence has to be submitted, and `wanted` > `done`
// that memory still waits. (queue_slots.hpp explains the protocol.)
struct alignas(64) queue_slot {
  std::atomic<std::uint64_t> serial{0};  // of the queue; 0: never used
  std::atomic<std::uint64_t> wanted{0};  // the highest number that a ticket has
  std::atomic<std::uint64_t> issued{0};  // of the fence begun last
  std::atomic<std::uint64_t> done{0};    // of the last fence that has passed
  std::atomic<std::uint32_t> lanes{0};   // thread caches that hold memory freed on the queue
  std::atomic<std::uint32_t> next{0};    // in its chain; 0: the last
  ref<queue> on;                         // under the lock
  // Under the lock: the fence submitted last, and its number.
  ref<event> fence;
  std::uint64_t fence_number = 0;
};

// Writers hold the owner's lock; `find` and access to entries below `used()` need no lock.
class queue_slot_table {
 public:
  using index = std::uint32_t;
  static constexpr index k_none = 0;
  static constexpr index k_max = (1U << 16) - 1;

  // The first `reserved` entries belong to no queue.
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

  // The entry of the queue with that serial number. Without the lock, k_none may be wrong.
  [[nodiscard]] index find(std::uint64_t serial) const noexcept;
  // Adds an entry without a queue. k_none at `k_max`, or if the host is out of memory.
  [[nodiscard]] index add() noexcept;
  // Assigns the entry to the queue, and removes it from its previous one. Pre: the queue has no
  // other entry.
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
