// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end of a queue: the last events submitted to it, whose completion implies the completion of
// everything submitted so far. Thread-safe; calls no driver.
//
// There is one event, or one for each thread that submits concurrently, and the off-queue events
// that no submission has followed yet. An off-queue event is outside the driver's queue, so the
// next submission must wait for it.

#include <atomic>
#include <cstdint>
#include <vector>

#include "backend/event.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class SubmissionTail {
 public:
  // Begins a submission: reserves the memory that its end needs, so that nothing can fail once an
  // operation is in flight. Each call is followed by one call of `record`, `insert_off_queue` or
  // `cancel`. Returns a number for `record`. Throws std::bad_alloc without effect.
  [[nodiscard]] std::uint64_t reserve() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS;
  void cancel() noexcept;
  // Ends a submission with its event. `begin` is the number that `reserve` returned.
  // `off_queue_limit` is the number that `add_off_queue` returned if the submission waits for those
  // events, else 0. The event replaces all events that were added before `begin`: they precede the
  // submission in the queue's order, so its completion implies theirs. Events of concurrent
  // submissions remain, and so do off-queue events from the limit on.
  void record(Ref<Event> submitted, std::uint64_t begin, std::uint64_t off_queue_limit) noexcept;
  // Ends a submission with an off-queue event.
  void insert_off_queue(const Ref<Event>& event) noexcept;

  [[nodiscard]] bool has_off_queue() const noexcept {
    return has_off_queue_.load(std::memory_order_acquire);
  }
  // Adds the off-queue events to `out`. Returns a number greater than those of their entries.
  [[nodiscard]] std::uint64_t add_off_queue(std::vector<Ref<Event>>& out);
  // Returns an off-queue event that is not known to have completed; null if there is none.
  [[nodiscard]] Ref<Event> unfinished_off_queue() noexcept;

  // A number greater than those of all entries.
  [[nodiscard]] std::uint64_t next_number() noexcept;
  // Adds the events that are not known to have completed to `out`.
  void add_unfinished(std::vector<Ref<Event>>& out);
  // Whether at most one event is not known to have completed. Stores that event in `last`, or
  // leaves `last` null if there is none. `last` is null before.
  [[nodiscard]] bool has_single_end(Ref<Event>& last) noexcept;
  // Whether all events are known to have completed.
  [[nodiscard]] bool is_known_idle() noexcept;

 private:
  struct Entry {
    std::uint64_t number;  // increases with each entry
    Ref<Event> last;
    bool is_off_queue = false;
  };

  SpinLock lock_;
  // Submissions begun and not in `entries_` yet.
  std::uint32_t reserved_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::vector<Entry> entries_ ISTHMUS_GUARDED_BY(lock_);
  std::uint64_t next_number_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::atomic<bool> has_off_queue_{false};  // whether one of `entries_` is off-queue
};

}  // namespace isthmus
