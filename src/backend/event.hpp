// SPDX-License-Identifier: Apache-2.0
#pragma once
// An event completes exactly once, with success or an error, and retains that outcome.
//
// A backend derives from it and calls `complete` when the driver reports completion. `refresh`
// queries the driver; `arm` ensures that `complete` is called even if no thread polls. Thread-safe.
// Costs: 40 ns to create an event, one load to inspect a completed one.

#include <atomic>
#include <cstdint>
#include <span>

#include "core/ref.hpp"
#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

class Event;
class Context;

// Work to do on completion. `run` is called exactly once, on the thread that completes the event,
// which may be inside a driver callback: it must not block, must not take a lock that is held
// during driver calls, and must not call a driver. The object deletes itself if necessary.
class Continuation {
 public:
  Continuation() = default;
  Continuation(const Continuation&) = delete;
  Continuation& operator=(const Continuation&) = delete;
  virtual void run(Event& completed) noexcept = 0;

 protected:
  virtual ~Continuation() = default;

 private:
  friend class Event;
  Continuation* next_ = nullptr;
};

struct EventTimes {
  std::uint64_t submitted_ns = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
};

class Event : public RefCounted {
 public:
  // PENDING, OK or the error. Never blocks. Not PENDING once a later operation on the same queue is
  // known to have completed.
  [[nodiscard]] Status poll() noexcept;
  [[nodiscard]] bool pending() noexcept { return poll() == ISTHMUS_PENDING; }
  // Returns the operation's own outcome, or TIMEOUT.
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // Returns whether the operation ended by the deadline, whatever its outcome. CALLBACK if the
  // thread's interrupt function ended the wait (core/interrupt.hpp).
  [[nodiscard]] Result<bool> wait_interruptibly(const os::Deadline& until);
  // Pre: the event has completed.
  [[nodiscard]] Error outcome() const noexcept { return error_; }
  // Whether completion is known without querying the driver.
  [[nodiscard]] bool settled() const noexcept {
    return state_.load(std::memory_order_acquire) >= k_succeeded;
  }
  [[nodiscard]] bool succeeded() const noexcept {
    return state_.load(std::memory_order_acquire) == k_succeeded;
  }
  // Notes that the failure was returned to a caller outside the library, so that it is not reported
  // again.
  void note_reported() noexcept { reported_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool reported() const noexcept { return reported_.load(std::memory_order_relaxed); }
  // Runs `continuation` at once if the event has completed. The event need not outlive the call.
  void on_complete(Continuation& continuation) noexcept;
  // The same for a continuation that only releases something. If the driver does not report
  // completion, it may run as late as the next poll of the event, wait for it, or submission after
  // it.
  void on_complete_lazily(Continuation& continuation) noexcept;

  // Times on the device's clock. UNSUPPORTED if the driver records none.
  [[nodiscard]] virtual Result<EventTimes> times();
  // Identifies the clock of these times. Null if they cannot be compared with those of another
  // event.
  [[nodiscard]] virtual const void* clock() const noexcept { return nullptr; }
  // Nanoseconds from the end of `earlier` to the end of this event. Pre: both have completed.
  // UNSUPPORTED if the driver does not record times, INVALID_ARGUMENT for events of two devices.
  [[nodiscard]] virtual Result<std::int64_t> elapsed_since(Event& earlier);
  [[nodiscard]] virtual void* native() noexcept { return nullptr; }
  // Whether the driver has received the operation. If so, it precedes everything that other code
  // submits to the same driver queue from now on.
  [[nodiscard]] virtual bool is_enqueued() const noexcept { return true; }

  // References held through the public interfaces. A host event counts them: each could still
  // complete it.
  virtual void retain_handle() noexcept { retain(); }
  virtual void release_handle() noexcept { release(); }

 protected:
  // The first call wins and returns true. Safe from any thread.
  bool complete(Error outcome) noexcept;
  // Queries the driver without blocking, and calls `complete` if the operation has ended.
  virtual void refresh() noexcept {}
  // Ensures that `complete` is called without further polling.
  virtual void arm() noexcept {}
  // As `arm`, for continuations that may run late.
  virtual void arm_lazily() noexcept { arm(); }
  // Blocks until completion or the deadline. The default arms the event and sleeps.
  virtual void block(const os::Deadline& until) noexcept;

  Event() = default;
  ~Event() override;

 private:
  // A state only moves forward: pending, completing, then succeeded or failed. The thread that
  // moves it to `k_completing` alone writes `error_` and publishes it with the final state, so that
  // a thread that reads a final state with acquire order may read `error_`.
  enum State : std::uint32_t { k_pending, k_completing, k_succeeded, k_failed };

  void wait_for_publication() noexcept;
  // Returns false if the event had completed; `continuation` has then been run.
  bool add_continuation(Continuation& continuation) noexcept;

  std::atomic<std::uint32_t> state_{k_pending};
  // Threads that sleep on `state_`. Their increments and the final store to `state_` are
  // sequentially consistent, so that no wakeup is lost.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> reported_{false};
  // A stack of pending continuations, linked through `next_`. Pushed with compare-and-swap;
  // completion exchanges it for a closing mark, after which a continuation runs at once.
  std::atomic<Continuation*> continuations_{nullptr};
  Error error_;
};

// An event that its holder completes: user code, a library thread, or a bridge between platforms.
class HostEvent final : public Event {
 public:
  // Returns false if the event was complete already.
  bool finish(Error outcome) noexcept { return complete(std::move(outcome)); }
  void retain_handle() noexcept override;
  // Releasing the last handle completes the event with ABANDONED, so that no thread waits
  // indefinitely.
  void release_handle() noexcept override;

 private:
  std::atomic<std::uint32_t> handles_{1};
};

// Completed by the library, whatever the number of handles: an operation that library threads
// execute.
class LibraryEvent final : public Event {
 public:
  bool finish(Error outcome) noexcept { return complete(std::move(outcome)); }
};

using WaitList = std::span<const Ref<Event>>;

// The outcome of an operation that waited for an event that failed with `cause`: DEPENDENCY.
[[nodiscard]] Error failed_dependency(const Error& cause);

[[nodiscard]] Error failed_events_have_no_time();

// Waits for the events in turn, up to the first that failed: then DEPENDENCY.
[[nodiscard]] Result<void> wait_for_all(WaitList events);

// Waits for events that only order: their failures are ignored.
void wait_until_ended(WaitList events);
// The same up to a deadline. TIMEOUT if an event is still pending then.
[[nodiscard]] Result<void> wait_until_ended(WaitList events, const os::Deadline& until);
// The same without a deadline. CALLBACK if the thread's interrupt function ended the wait.
[[nodiscard]] Result<void> wait_until_ended_interruptibly(WaitList events);

// Completes, with success, when all of them have ended, whatever their outcome. Throws
// std::bad_alloc, and then nothing was done.
[[nodiscard]] Ref<Event> end_of_all(WaitList events);
// The same, but with the failure of the first event that failed, if any did.
[[nodiscard]] Ref<Event> outcome_of_all(WaitList events);

// Whether this thread is running continuations.
[[nodiscard]] bool in_continuation() noexcept;

// An event that is complete; the same one for the whole process.
[[nodiscard]] Ref<Event> completed_event();

}  // namespace isthmus
