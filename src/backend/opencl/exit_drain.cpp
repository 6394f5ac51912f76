// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/exit_drain.hpp"

#include <chrono>
#include <thread>

#include "backend/opencl/delayed_queue.hpp"
#include "backend/opencl/gate.hpp"
#include "backend/opencl/queue.hpp"
#include "core/never_destroyed.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// For all queues together, since a user event of other code may never be set.
constexpr std::chrono::seconds k_longest_wait{5};
constexpr std::chrono::microseconds k_between_looks{50};

// Objects created here are released by the end of the process.
void run_empty(const Api& calls, QueueHandle handle, os::Clock::time_point until) noexcept {
  EventHandle last = nullptr;
  if (os::Clock::now() < until &&
      calls.enqueue_barrier(handle, 0, nullptr, &last) == cl::k_success) {
    calls.flush(handle);
    Code reached = cl::k_complete;
    while (calls.get_event_info(last, cl::k_event_status, sizeof reached, &reached, nullptr) ==
               cl::k_success &&
           reached > cl::k_complete && os::Clock::now() < until) {
      std::this_thread::sleep_for(k_between_looks);
    }
  }
}

}  // namespace

ExitDrain& ExitDrain::only() noexcept {
  static NeverDestroyed<ExitDrain> made;
  [[maybe_unused]] static const bool registered = [] {
    static os::LastDriverCalls ours{[]() noexcept { only().run(); }};
    os::add_last_driver_calls(ours);
    return true;
  }();
  return *made;
}

void ExitDrain::add(Gate& closed) noexcept { append(gates_, closed); }

void ExitDrain::add(Queue& open) noexcept { append(queues_, open); }

void ExitDrain::add(DelayedQueue& open) noexcept { append(lingering_, open); }

void ExitDrain::append(List& target, DrainedAtExit& member) noexcept {
  const std::lock_guard hold{lock_};
  member.previous_ = target.previous_;
  member.next_ = &target;
  target.previous_->next_ = &member;
  target.previous_ = &member;
}

void ExitDrain::unlink(DrainedAtExit& member) noexcept {
  member.previous_->next_ = member.next_;
  member.next_->previous_ = member.previous_;
  member.previous_ = member.next_ = &member;
}

void ExitDrain::remove(DrainedAtExit& member) noexcept {
  if (os::is_forked_child()) {
    return;  // the lock may be held by a thread that does not exist in the child
  }
  const std::lock_guard hold{lock_};
  unlink(member);
}

bool ExitDrain::end_a_gate() noexcept {
  std::unique_lock hold{lock_};
  if (gates_.next_ == &gates_) {
    return false;
  }
  auto& closed = static_cast<Gate&>(*gates_.next_);
  unlink(closed);
  const Ref<Gate> kept{
      &closed};  // still alive: its opener removes it from the list before releasing it
  hold.unlock();
  closed.end_unopened();
  return true;
}

template <class Queue>
bool ExitDrain::await_one_of(List& queues, os::Clock::time_point until) noexcept {
  std::unique_lock hold{lock_};
  if (queues.next_ == &queues) {
    return false;
  }
  auto& open = static_cast<Queue&>(*queues.next_);
  unlink(open);
  if (open.quiet()) {
    return true;
  }
  // Retains the driver's queue in place of `open`, which may be destroyed once the lock is
  // released. The reference is released by the end of the process.
  const auto& calls = open.calls();
  auto* const handle = open.handle();
  if (calls.retain_queue(handle) == cl::k_success) {
    hold.unlock();
    run_empty(calls, handle, until);
  }
  return true;
}

void ExitDrain::run() noexcept {
  while (end_a_gate()) {
  }
  const auto until = os::Clock::now() + k_longest_wait;
  while (await_one_of<Queue>(queues_, until) || await_one_of<DelayedQueue>(lingering_, until)) {
  }
}

}  // namespace isthmus::opencl
