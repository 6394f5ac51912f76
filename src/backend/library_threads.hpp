// SPDX-License-Identifier: Apache-2.0
#pragma once
// Library threads, for functions submitted to queues and for copies through the host.
//
// Each work item occupies one thread while it runs, since it may wait for other items. Idle threads
// are reused. Thread-safe.

#include <functional>
#include <memory>

#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

struct WorkItem;

// Runs `work` on a library thread. If none can be started, calls `on_failure` with the reason, on
// the calling thread. Never blocks.
void run_on_library_thread(std::function<void()> work,
                           const std::function<void(Error)>& on_failure) noexcept;

// Work with a reserved thread, so that starting it cannot fail.
class ReservedWork {
 public:
  // OUT_OF_MEMORY if no thread can be started. Throws std::bad_alloc.
  [[nodiscard]] static Result<ReservedWork> make(std::function<void()> work);
  ReservedWork(ReservedWork&& other) noexcept;
  ReservedWork& operator=(ReservedWork&&) = delete;
  // Releases the reserved thread if the work was not started.
  ~ReservedWork();

  // Called at most once. Never blocks.
  void start() noexcept;

 private:
  explicit ReservedWork(std::function<void()> work);

  std::unique_ptr<WorkItem> item_;
};

// Performs the work that is due. Returns the time at which more work will be due, or std::nullopt
// if no more work is known until the next `run_when_idle`.
using IdleWork = os::Deadline (*)() noexcept;
// Calls `work` on an idle library thread at `when` or later, on one thread at a time. A call
// with another function replaces that of earlier calls. Starts the first thread if there is none.
// If all threads are busy, the work is delayed until one is idle. Never blocks.
void run_when_idle(IdleWork work, os::Clock::time_point when) noexcept;

// Called before and after every call of a user's function. `try_begin_function` returns false after
// `stop_functions`; the user's function must not run then.
[[nodiscard]] bool try_begin_function() noexcept;
void end_function() noexcept;

// Prevents further user functions from starting and waits for those that are running, except the
// one that calls this.
void stop_functions() noexcept;
[[nodiscard]] Error functions_stopped_error();

}  // namespace isthmus
