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
  // Releases the object if nothing uses it. Otherwise determines its uses, and schedules its
  // release after them. Never blocks.
  virtual void release_now() noexcept = 0;
  // The queue, if only work that was submitted so far to a single queue may use the object; else
  // null. That queue is then queried once for many objects.
  [[nodiscard]] virtual Ref<Queue> sole_queue() noexcept { return {}; }
  // Whether its uses can be determined only by querying a queue that is queried on demand
  // (`QueueTraits::is_queried_on_demand`).
  [[nodiscard]] virtual bool is_released_on_demand() noexcept { return false; }
  // The bytes of memory that its release will return.
  [[nodiscard]] virtual std::size_t nbytes() const noexcept { return 0; }
  // As `release_now`, after the work on the sole queue has completed.
  virtual void release_idle() noexcept { release_now(); }
  // Called when its uses cannot be determined now, and it is unknown when they can be.
  virtual void on_deferred() noexcept {}
  // Called when its uses are known, so that its release follows their completion.
  virtual void on_scheduled() noexcept {}

 private:
  friend class DeferredRelease;
  Releasable* next_ready_ = nullptr;
};

// Releases `object` on the library thread after all of `running` have completed. Never blocks.
// Throws std::bad_alloc, without effect.
void release_after(Releasable& object, const std::vector<Ref<Event>>& running);
// Releases `object` as soon as possible, on the library thread: for callers that must not query a
// driver.
void defer_release(Releasable& object) noexcept;
// Tries the release of `object` again, after an attempt failed because there was no host memory or
// a driver could not report its running work. The first delay is one millisecond; it doubles with
// each attempt, up to one second.
void retry_release(Releasable& object) noexcept;
// Starts the library thread if an earlier attempt failed for lack of memory; otherwise costs one
// load. For callers that allocate memory or return it to the driver.
void start_release_thread() noexcept;
// Starts the releases on demand (`Releasable::is_released_on_demand`), and waits, at most 4 ms,
// until their queues have been queried. Returns false if there are none, or on a library thread.
// For calls of the program that allocate memory or return it to the driver, while they hold no
// lock. `wait_for_release` does the same. Also releases expired queues
// (backend/workarounds/delayed_release.hpp).
bool release_on_demand() noexcept;
// As `release_on_demand`, but only if these releases amount to 64 MiB or more, each counted as at
// least 1 MiB; otherwise costs one load. Releases no expired queues. For frequent calls, since a
// query takes about 0.1 ms.
bool release_large_on_demand() noexcept;
// The number of releases so far.
[[nodiscard]] std::uint64_t release_count() noexcept;
// Waits until `release_count` exceeds `seen`. Returns false if no release is pending, at `until`,
// or on the library thread, which performs the releases.
[[nodiscard]] bool sleep_for_release(std::uint64_t seen, const os::Deadline& until) noexcept;
// As `sleep_for_release`; fails with CALLBACK if the thread's interrupt function ended the wait.
[[nodiscard]] inline Result<bool> wait_for_release(std::uint64_t seen, const os::Deadline& until) {
  bool released = false;
  auto result = wait_in_slices(until, [&](const os::Deadline& slice) {
    released = sleep_for_release(seen, slice);
    // A return without a release before the slice ends means that none is pending.
    return released || !slice || os::Clock::now() < *slice;
  });
  ISTHMUS_TRY(result);
  return released;
}

}  // namespace isthmus
