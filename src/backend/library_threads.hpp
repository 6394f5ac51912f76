// SPDX-License-Identifier: Apache-2.0
#pragma once
// Library threads, for functions submitted to queues and for copies through the host.
//
// A piece of work may wait for another one, so each has a thread while it runs. Idle threads are
// kept and reused. Thread-safe.

#include <functional>
#include <memory>

#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

struct work_item;

// Runs `work` on a library thread. If none can be started, calls `refuse` with the reason, on the
// calling thread. Never blocks.
void run_on_library_thread(std::function<void()> work,
                           const std::function<void(error)>& refuse) noexcept;

// Work with a reserved thread, so that starting it cannot fail.
class reserved_work {
 public:
  // OUT_OF_MEMORY if no thread can be started. Throws std::bad_alloc.
  [[nodiscard]] static result<reserved_work> make(std::function<void()> work);
  reserved_work(reserved_work&& other) noexcept;
  reserved_work& operator=(reserved_work&&) = delete;
  // Returns the thread if the work was not started.
  ~reserved_work();

  // Pre: called at most once. Never blocks.
  void start() noexcept;

 private:
  explicit reserved_work(std::function<void()> work);

  std::unique_ptr<work_item> item_;
};

// Does what is due and returns when more will be due; none if not before the next `do_when_idle`.
using idle_work = os::deadline (*)() noexcept;
// Has an idle library thread call `what` at `when` or later, on one thread at a time. Pre: always
// the same function. Starts the first thread if there is none; if all threads are busy, the work
// waits for one. Never blocks.
void do_when_idle(idle_work what, os::clock::time_point when) noexcept;

// Encloses every call of a user's function. Returns false after `stop_functions`; the function must
// not run then.
[[nodiscard]] bool function_may_begin() noexcept;
void function_ended() noexcept;

// Prevents further functions of the user from starting and waits for those that run.
void stop_functions() noexcept;
[[nodiscard]] error functions_are_stopped();

}  // namespace isthmus
