// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries (`QueueEntry`) of a pool's queues, found by the queue's serial number at a cost that
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
// the driver, `done` after it has completed. A ticket gets the number `issued` + 1 at the time of
// the free. So `wanted` > `issued` means that a fence must be submitted, and `wanted` > `done`
// means that memory still waits. (queue_fences.hpp explains the protocol.)
struct alignas(64) QueueEntry {
  std::atomic<std::uint64_t> serial{0};  // of the queue; 0: never used
  std::atomic<std::uint64_t> wanted{0};  // the highest number that a ticket has
  std::atomic<std::uint64_t> issued{0};  // of the fence begun last
  std::atomic<std::uint64_t> done{0};    // of the last fence that has passed
  std::atomic<std::uint32_t> thread_cache_count{
      0};                              // thread caches that hold memory freed on the queue
  std::atomic<std::uint32_t> next{0};  // in its chain; 0: the last
  Ref<Queue> queue;                    // under the lock
  // Under the lock: the fence submitted last, and its number.
  Ref<Event> fence;
  std::uint64_t fence_number = 0;
};

// Writers hold the owner's lock; `find` and access to entries below `used()` need no lock.
class QueueEntryTable {
 public:
  using Index = std::uint32_t;
  static constexpr Index k_none = 0;
  static constexpr Index k_max = (1U << 16) - 1;

  // The first `reserved` entries belong to no queue.
  explicit QueueEntryTable(Index reserved) noexcept : used_{reserved} {}
  ~QueueEntryTable();
  QueueEntryTable(const QueueEntryTable&) = delete;
  QueueEntryTable& operator=(const QueueEntryTable&) = delete;

  [[nodiscard]] QueueEntry& operator[](Index index) noexcept {
    return chunk_of(index)[index % k_chunk];
  }
  [[nodiscard]] const QueueEntry& operator[](Index index) const noexcept {
    return chunk_of(index)[index % k_chunk];
  }
  [[nodiscard]] Index used() const noexcept { return used_.load(std::memory_order_acquire); }

  // The entry of the queue with that serial number. Without the lock, the result may be k_none
  // although the queue has an entry.
  [[nodiscard]] Index find(std::uint64_t serial) const noexcept;
  // Adds an entry without a queue. k_none at `k_max`, or if the host is out of memory.
  [[nodiscard]] Index add() noexcept;
  // Assigns the entry to the queue, and removes the entry from the chain of its previous queue.
  // The queue has no other entry.
  void assign(Index index, std::uint64_t serial) noexcept;

 private:
  static constexpr Index k_chunk = 64;
  static constexpr Index k_chains = 1024;
  using Chunk = std::array<QueueEntry, k_chunk>;

  [[nodiscard]] Chunk& chunk_of(Index index) const noexcept {
    return *chunks_[index / k_chunk].load(std::memory_order_acquire);
  }
  [[nodiscard]] std::atomic<Index>& chain_of(std::uint64_t serial) noexcept {
    return chains_[serial % k_chains];
  }
  void unlink(Index index) noexcept;

  Chunk first_;
  std::array<std::atomic<Chunk*>, (k_max + k_chunk) / k_chunk> chunks_{&first_};
  std::array<std::atomic<Index>, k_chains> chains_{};
  std::atomic<Index> used_;
};

}  // namespace isthmus
