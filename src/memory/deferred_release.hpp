// SPDX-License-Identifier: Apache-2.0
#pragma once
// Deferred release: releases objects whose last reference was dropped while operations were still
// using them. Runs on one library thread, because driver callbacks must not call the driver. All
// functions are thread-safe.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/queue.hpp"
#include "core/interrupt.hpp"
#include "os/futex.hpp"

namespace isthmus {

// An object that is released after its last use.
class Releasable {
 public:
  virtual ~Releasable() = default;
  // Releases the object if nothing uses it; else finds out what does, and has it released after
  // that. Never blocks.
  virtual void release_now() noexcept = 0;
  // If only work on a single queue may use the object, all that was submitted there so far: that
  // queue. It is queried once for many objects.
  [[nodiscard]] virtual Ref<Queue> sole_queue() noexcept { return {}; }
  // Whether finding its uses requires a queue that is queried on demand only
  // (`Queue::is_queried_on_demand`).
  [[nodiscard]] virtual bool is_released_on_demand() noexcept { return false; }
  // The bytes of memory that its release will return.
  [[nodiscard]] virtual std::size_t nbytes() const noexcept { return 0; }
  // As `release_now`, after that work has completed.
  virtual void release_idle() noexcept { release_now(); }
  // Called when its uses cannot be determined now, nor the time when they can.
  virtual void on_deferred() noexcept {}
  // Called when its uses are known: it is released after they have completed.
  virtual void on_scheduled() noexcept {}

 private:
  friend class DeferredRelease;
  Releasable* next_ready_ = nullptr;
};

// Releases `object` on the library thread after all of `running` have completed. Never blocks.
// Throws std::bad_alloc, and then nothing is done.
void release_after(Releasable& object, const std::vector<Ref<Event>>& running);
// Releases `object` as soon as possible, on the library thread: for callers that must not query a
// driver.
void defer_release(Releasable& object) noexcept;
// The same after a release failed because there was no memory, or because a driver could not report
// what is running. It is tried again after one millisecond, then after twice as long each time, up
// to a second.
void retry_release(Releasable& object) noexcept;
// Starts the library thread if there was no memory for it before; otherwise costs one load. For
// callers that allocate memory or return it to the driver.
void start_release_thread() noexcept;
// Performs the releases that wait for a demand, and waits, at most 4 ms, until their queues have
// been queried. False if there are none, and on a library thread. For calls of the program that
// allocate memory or return it to the driver, while they hold no lock. `wait_for_release` does the
// same. Also releases lingering queues (backend/lingering.hpp).
bool release_on_demand() noexcept;
// The same, except for lingering queues, if these releases amount to 64 MiB or more, each counted
// as at least 1 MiB; otherwise costs one load. For frequent calls: querying takes some 0.1 ms.
bool release_large_on_demand() noexcept;
// The number of releases so far.
[[nodiscard]] std::uint64_t release_count() noexcept;
// Waits until more than `seen` releases have been made. False if none is pending, at `until`, and
// on the thread that makes them.
[[nodiscard]] bool sleep_for_release(std::uint64_t seen, const os::Deadline& until) noexcept;
// The same; CALLBACK where the thread's interrupt function ended the wait.
[[nodiscard]] inline Result<bool> wait_for_release(std::uint64_t seen, const os::Deadline& until) {
  bool released = false;
  auto result = wait_in_slices(until, [&](const os::Deadline& slice) {
    released = sleep_for_release(seen, slice);
    return released || !slice || os::Clock::now() < *slice;  // before its end: none is pending
  });
  ISTHMUS_TRY(result);
  return released;
}

}  // namespace isthmus
