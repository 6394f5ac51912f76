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
#include <vector>

#include "backend/queue_position.hpp"
#include "core/expects.hpp"
#include "core/ref.hpp"
#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

class Event;
class Context;

// Work to do on completion. `run` is called exactly once, on the thread that completes the event,
// which may be inside a driver callback: it must not block, must not acquire a lock that is held
// during driver calls, and must not call a driver. The object deletes itself if necessary.
class Continuation {
 public:
  // `Turn::last`: runs after the other continuations of its event, for code of the program.
  enum class Turn : bool { any, last };

  explicit Continuation(Turn turn = Turn::any) noexcept : turn_{turn} {}
  Continuation(const Continuation&) = delete;
  Continuation& operator=(const Continuation&) = delete;
  virtual void run(Event& completed) noexcept = 0;

 protected:
  virtual ~Continuation() = default;

 private:
  friend class Event;
  Continuation* next_ = nullptr;
  const Turn turn_;
};

struct EventTimes {
  std::uint64_t submitted_ns = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
};

class Event : public RefCounted {
 public:
  // Returns PENDING, OK or the operation's error. Never blocks. Does not return PENDING once a
  // later operation on the same queue is known to have completed.
  [[nodiscard]] Status poll() noexcept;
  [[nodiscard]] bool pending() noexcept { return poll() == ISTHMUS_PENDING; }
  // Returns the operation's own outcome, or TIMEOUT. DEADLOCK, without waiting, if there is no
  // deadline and a function on a queue would wait for its own end (backend/function_waits.hpp).
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // Returns whether the operation ended by the deadline, whatever its outcome. CALLBACK if the
  // thread's interrupt function ended the wait (core/interrupt.hpp). DEADLOCK as for `wait`.
  [[nodiscard]] Result<bool> wait_interruptibly(const os::Deadline& until);
  // Like `wait`, but never returns DEADLOCK, for waits that must not fail. A caller that may run in
  // a function checks that before the submission (Queue::begin_wait).
  [[nodiscard]] Result<void> wait_unchecked(const os::Deadline& until);
  // The outcome of an event that has completed.
  [[nodiscard]] Error outcome() const noexcept {
    ISTHMUS_EXPECTS(settled());
    return error_;
  }
  // Whether completion is known without querying the driver.
  [[nodiscard]] bool settled() const noexcept {
    return state_.load(std::memory_order_acquire) >= k_succeeded;
  }
  [[nodiscard]] bool succeeded() const noexcept {
    return state_.load(std::memory_order_acquire) == k_succeeded;
  }
  // The position of the operation on its queue, set before other threads can obtain the event.
  void set_position(QueuePosition position) noexcept { position_ = position; }
  // Adds the positions of operations that end no later than this event: of its own operation and,
  // if an event combines others, of those. Throws std::bad_alloc.
  virtual void add_positions(std::vector<QueuePosition>& out) const;

  // Records that the failure was returned to a caller outside the library, so that it is not
  // reported again.
  void note_reported() noexcept { reported_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool reported() const noexcept { return reported_.load(std::memory_order_relaxed); }
  // For the event of a function that gets one public handle: if its failure was not reported when
  // the last handle is released, it is logged then or on completion. Called before that.
  void log_if_dropped() noexcept { watched_handles_.store(2, std::memory_order_seq_cst); }
  // Runs `continuation` at once if the event has completed. The event need not outlive the call.
  void on_complete(Continuation& continuation) noexcept;
  // Like `on_complete`, for a continuation that only releases objects. If the driver does not
  // report completion, the continuation may be delayed until a thread polls this event, waits for
  // it, or submits a later operation.
  void on_complete_lazily(Continuation& continuation) noexcept;

  // Times on the device's clock. PENDING if the operation has not completed, UNSUPPORTED if the
  // driver records none.
  [[nodiscard]] Result<EventTimes> times();
  // Identifies the clock of these times. Null if they cannot be compared with those of another
  // event.
  [[nodiscard]] virtual const void* clock() const noexcept { return nullptr; }
  // Nanoseconds from the end of `earlier` to the end of this event, both of which have completed.
  // UNSUPPORTED if the driver does not record times, INVALID_ARGUMENT for events of two devices.
  [[nodiscard]] virtual Result<std::int64_t> elapsed_since(Event& earlier);
  [[nodiscard]] virtual void* native() noexcept { return nullptr; }
  // Whether the driver has received the operation. If so, it precedes everything that other code
  // submits to the same driver queue from now on.
  [[nodiscard]] virtual bool is_enqueued() const noexcept { return true; }

  // Acquire and release a reference held through the public interfaces. A host event counts these
  // references, since a holder of any of them can still complete it.
  virtual void retain_handle() noexcept;
  virtual void release_handle() noexcept;

 protected:
  // Only the first call has an effect and returns true. May be called by any thread.
  bool complete(Error outcome) noexcept;
  // Queries the driver without blocking, and calls `complete` if the operation has ended.
  virtual void refresh() noexcept {}
  // Ensures that `complete` is called without further polling.
  virtual void arm() noexcept {}
  // Like `arm`, for continuations that may be delayed.
  virtual void arm_lazily() noexcept { arm(); }
  // The times of an operation that has completed. The default suits events that record none.
  [[nodiscard]] virtual Result<EventTimes> do_times();
  // Blocks until completion or the deadline. The default arms the event and sleeps.
  virtual void block(const os::Deadline& until) noexcept;

  Event() = default;
  ~Event() override;

 private:
  // The state changes from pending to completing, then to succeeded or failed. Only the thread that
  // sets `k_completing` writes `error_`, which it publishes with the final state. A thread that
  // reads a final state with acquire order may therefore read `error_`.
  enum State : std::uint32_t { k_pending, k_completing, k_succeeded, k_failed };

  void wait_for_publication() noexcept;
  void log_dropped_failure() noexcept;
  void block_observed(const os::Deadline& until) noexcept;
  [[nodiscard]] Result<void> outcome_so_far();
  // Returns false if the event had completed; `continuation` has then been run.
  bool add_continuation(Continuation& continuation) noexcept;

  std::atomic<std::uint32_t> state_{k_pending};
  // The number of threads that sleep on `state_`. Its increments and the final store to `state_`
  // are sequentially consistent, so that no wakeup is lost.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> reported_{false};
  // 0, or one more than the number of public handles after `log_if_dropped`. Completion first
  // stores `state_` and then reads this count; the release of the last handle first decrements the
  // count and then reads `state_`. Both are sequentially consistent, so that one of them logs.
  std::atomic<std::uint32_t> watched_handles_{0};
  // A stack of pending continuations, linked through `next_`. Continuations are pushed with
  // compare-and-swap. Completion exchanges the stack for a closing mark; continuations added
  // afterwards run at once.
  std::atomic<Continuation*> continuations_{nullptr};
  QueuePosition position_;
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

// The event of an operation that library threads execute. Unlike a host event, it is not completed
// by releasing its last handle.
class LibraryEvent final : public Event {
 public:
  bool finish(Error outcome) noexcept { return complete(std::move(outcome)); }
  // Records that this event completes after `events`, before other threads can obtain it. Costs one
  // load while no function is pending. Throws std::bad_alloc.
  void follow(std::span<const Ref<Event>> events);
  void add_positions(std::vector<QueuePosition>& out) const override;

 private:
  std::vector<QueuePosition> followed_;  // the functions that `events` follow
};

using WaitList = std::span<const Ref<Event>>;

// The positions of all events. Throws std::bad_alloc.
[[nodiscard]] std::vector<QueuePosition> positions_of(WaitList events);

// The outcome of an operation that waited for an event that failed with `cause`: DEPENDENCY.
[[nodiscard]] Error failed_dependency(const Error& cause);

[[nodiscard]] Error failed_events_have_no_time();

// Waits for the events in order. Returns DEPENDENCY at the first one that failed. DEADLOCK as for
// Event::wait.
[[nodiscard]] Result<void> wait_for_all(WaitList events);

// Waits until all events have completed, and ignores their failures. Not checked for deadlock.
void wait_until_ended(WaitList events);
// The same up to a deadline. TIMEOUT if an event is still pending at the deadline. DEADLOCK as for
// Event::wait.
[[nodiscard]] Result<void> wait_until_ended(WaitList events, const os::Deadline& until);
// The same without a deadline. CALLBACK if the thread's interrupt function ended the wait, DEADLOCK
// as for Event::wait.
[[nodiscard]] Result<void> wait_until_ended_interruptibly(WaitList events);

// Returns an event that completes with success once all of `events` have completed, whatever their
// outcomes. Throws std::bad_alloc without any effect.
[[nodiscard]] Ref<Event> end_of_all(WaitList events);
// The same, but with the failure of the first event that failed, if any did.
[[nodiscard]] Ref<Event> outcome_of_all(WaitList events);

// Whether this thread is running continuations. False in the last ones of a host event, unless a
// continuation completed that event.
[[nodiscard]] bool in_continuation() noexcept;

// Returns a completed event, which the whole process shares.
[[nodiscard]] Ref<Event> completed_event();

}  // namespace isthmus
