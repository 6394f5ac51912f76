// SPDX-License-Identifier: Apache-2.0
#pragma once
// Library threads, for functions submitted to queues and for copies through the host.
//
// Work may wait for other work, so each has a thread of its own while it runs. Idle threads are
// reused. Thread-safe.

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
  // Returns the thread if the work was not started.
  ~ReservedWork();

  // Pre: called at most once. Never blocks.
  void start() noexcept;

 private:
  explicit ReservedWork(std::function<void()> work);

  std::unique_ptr<WorkItem> item_;
};

// Does the work that is due. Returns when more is due; none if not before the next `run_when_idle`.
using IdleWork = os::Deadline (*)() noexcept;
// Has an idle library thread call `work` at `when` or later, on one thread at a time. Pre: always
// the same function. Starts the first thread if there is none; if all threads are busy, the work
// waits for one. Never blocks.
void run_when_idle(IdleWork work, os::Clock::time_point when) noexcept;

// Encloses every call of a user's function. Returns false after `stop_functions`; the function must
// not run then.
[[nodiscard]] bool try_begin_function() noexcept;
void end_function() noexcept;

// Prevents further functions of the user from starting and waits for those that run.
void stop_functions() noexcept;
[[nodiscard]] Error functions_stopped_error();

}  // namespace isthmus
