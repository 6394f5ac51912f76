#pragma once
// An event: completes exactly once, with success or an error, and then stays so.
//
// A back-end derives from it and calls `complete` when the driver says so; `refresh` asks the
// driver, `arm` makes sure that `complete` comes without anybody asking. Costs: making one 40 ns,
// looking at a completed one a plain load.

#include <atomic>
#include <cstdint>
#include <span>

#include "core/ref.hpp"
#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

class event;
class context;

// What is to happen on completion. Runs exactly once, on whichever thread completes the event, a
// driver's callback included: it must not block, take a lock that is held over a driver call, nor
// call a driver. It deletes itself if it has to.
class continuation {
 public:
  continuation() = default;
  continuation(const continuation&) = delete;
  continuation& operator=(const continuation&) = delete;
  virtual void run(event& completed) noexcept = 0;

 protected:
  virtual ~continuation() = default;

 private:
  friend class event;
  continuation* next_ = nullptr;
};

struct event_times {
  std::uint64_t submitted_ns = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
};

class event : public ref_counted {
 public:
  // PENDING, OK or the error. Never blocks.
  [[nodiscard]] status poll() noexcept;
  [[nodiscard]] bool pending() noexcept { return poll() == ISTHMUS_PENDING; }
  // The operation's own outcome, or TIMEOUT.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // Whether it ended by then, in whichever way. CALLBACK where the thread's interrupt function
  // ended the wait (core/interrupt.hpp).
  [[nodiscard]] result<bool> wait_interruptibly(const os::deadline& until);
  // The outcome of a completed event.
  [[nodiscard]] error outcome() const noexcept { return error_; }
  // Whether it is known to have completed, without asking the driver.
  [[nodiscard]] bool settled() const noexcept {
    return state_.load(std::memory_order_acquire) >= k_succeeded;
  }
  [[nodiscard]] bool succeeded() const noexcept {
    return state_.load(std::memory_order_acquire) == k_succeeded;
  }
  // Whether somebody outside of the library has got its failure: then nobody else must report it.
  void note_reported() noexcept { reported_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool reported() const noexcept { return reported_.load(std::memory_order_relaxed); }
  // Runs it at once if the event has completed. The event need not outlive the call.
  void on_complete(continuation& what) noexcept;
  // The same for what only lets go of something: it may come as late as when somebody next looks at
  // the event, waits for it or submits behind it, where the driver does not tell by itself.
  void on_complete_at_leisure(continuation& what) noexcept;

  // Times on the device's clock. UNSUPPORTED where the driver keeps none.
  [[nodiscard]] virtual result<event_times> times();
  // Which clock these are of; null: they may not be compared with any other's.
  [[nodiscard]] virtual const void* clock() const noexcept { return nullptr; }
  // Nanoseconds from the end of `earlier` to this one's. Pre: both have completed. UNSUPPORTED
  // where the driver does not tell, INVALID_ARGUMENT for events of two devices.
  [[nodiscard]] virtual result<std::int64_t> elapsed_since(event& earlier);
  [[nodiscard]] virtual void* native() noexcept { return nullptr; }
  // Whether the driver has the operation: what others put to the same driver's queue comes behind
  // it then.
  [[nodiscard]] virtual bool is_put() const noexcept { return true; }

  // References held through the public interfaces; a host event counts who could still complete it.
  virtual void retain_handle() noexcept { retain(); }
  virtual void release_handle() noexcept { release(); }

 protected:
  // First completion wins; true if this was it. Safe from any thread.
  bool complete(error outcome) noexcept;
  virtual void refresh() noexcept {}
  virtual void arm() noexcept {}
  virtual void arm_at_leisure() noexcept { arm(); }
  // Blocks until complete or the deadline; the default arms the event and sleeps.
  virtual void block(const os::deadline& until) noexcept;

  event() = default;
  ~event() override;

 private:
  enum state : std::uint32_t { k_pending, k_completing, k_succeeded, k_failed };

  // False if the event had completed, and it was run.
  bool add_continuation(continuation& what) noexcept;

  std::atomic<std::uint32_t> state_{k_pending};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> reported_{false};
  // A stack of what is to run; `k_closed` once it has been run.
  std::atomic<continuation*> continuations_{nullptr};
  error error_;
};

// An event completed by whoever holds it: user code, a worker, a bridge between platforms.
class host_event final : public event {
 public:
  // False if it was complete before.
  bool finish(error outcome) noexcept { return complete(std::move(outcome)); }
  void retain_handle() noexcept override;
  // The last handle's end completes it with ABANDONED, so that nothing waits for ever.
  void release_handle() noexcept override;

 private:
  std::atomic<std::uint32_t> handles_{1};
};

// Completed by the library, whoever still holds a handle of it: an operation that its own threads
// carry out.
class library_event final : public event {
 public:
  bool finish(error outcome) noexcept { return complete(std::move(outcome)); }
};

using wait_list = std::span<const ref<event>>;

// The outcome of what stood behind an event that ended with `cause`: DEPENDENCY.
[[nodiscard]] error failed_dependency(const error& cause);

[[nodiscard]] error failed_events_have_no_time();

// Waits for all of them, in turn, up to the first that failed: DEPENDENCY then.
[[nodiscard]] result<void> wait_for_all(wait_list events);

// Waits for what only comes before: whether it failed is its own event's concern.
void let_end(wait_list events);
// The same up to a deadline: TIMEOUT if one of them is pending then.
[[nodiscard]] result<void> let_end(wait_list events, const os::deadline& until);
// The same without one; CALLBACK where the thread's interrupt function ended the wait.
[[nodiscard]] result<void> let_end_interruptibly(wait_list events);

// Completes, with success, when all of them have ended, whatever their outcome. Throws
// std::bad_alloc, and then nothing is done.
[[nodiscard]] ref<event> end_of_all(wait_list events);
// The same, with the failure of whichever failed first, if any did.
[[nodiscard]] ref<event> outcome_of_all(wait_list events);

// Whether this thread is running continuations now.
[[nodiscard]] bool in_continuation() noexcept;

// An event that has completed already; one for the whole process.
[[nodiscard]] ref<event> completed_event();

}  // namespace isthmus
