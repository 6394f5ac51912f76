#pragma once
// Threads of the library: for functions given to queues and for copies that go by way of the host.
//
// Such work may wait for other such work, so each has a thread of its own while it runs; threads
// that have nothing to do are kept for the next.

#include <functional>
#include <memory>

#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

struct work_item;

// Runs `work` on a thread of its own. If no thread can be had, calls `refuse` with the reason, on
// the calling thread. Never blocks.
void run_on_library_thread(std::function<void()> work,
                           const std::function<void(error)>& refuse) noexcept;

// Work whose thread is reserved, so that starting it cannot fail.
class reserved_work {
 public:
  // OUT_OF_MEMORY where no thread can be had. Throws std::bad_alloc.
  [[nodiscard]] static result<reserved_work> make(std::function<void()> work);
  reserved_work(reserved_work&& other) noexcept;
  reserved_work& operator=(reserved_work&&) = delete;
  // Gives the thread up where the work was not started.
  ~reserved_work();

  // Once. Never blocks.
  void start() noexcept;

 private:
  explicit reserved_work(std::function<void()> work);

  std::unique_ptr<work_item> item_;
};

// Does what is due, and tells when more will be; none: not before somebody asks for it.
using idle_work = os::deadline (*)() noexcept;
// Has a thread of the library that is idle do it at `when` or later, always the same work and one
// thread at a time. The first is started for it; where all are busy it waits. Never blocks.
void do_when_idle(idle_work what, os::clock::time_point when) noexcept;

// Stands around every call of a user's function: false if they were stopped, and then it must not
// run.
[[nodiscard]] bool function_may_begin() noexcept;
void function_ended() noexcept;

// Lets no user's function begin any more and waits for those that run.
void stop_functions() noexcept;
[[nodiscard]] error functions_are_stopped();

}  // namespace isthmus
