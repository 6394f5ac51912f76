// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/exit_drain.hpp"

#include <chrono>
#include <thread>

#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// Limits the wait for all queues together, since a user event of other code may never be set.
constexpr std::chrono::seconds k_max_wait{5};
constexpr std::chrono::microseconds k_poll_interval{50};

// Does not release the objects that it creates: the process is exiting.
void drain_queue(const Api& calls, QueueHandle handle, os::Clock::time_point until) noexcept {
  EventHandle last = nullptr;
  if (os::Clock::now() < until &&
      calls.enqueue_barrier(handle, 0, nullptr, &last) == cl::k_success) {
    calls.flush(handle);
    Code status = cl::k_complete;
    while (calls.get_event_info(last, cl::k_event_status, sizeof status, &status, nullptr) ==
               cl::k_success &&
           status > cl::k_complete && os::Clock::now() < until) {
      std::this_thread::sleep_for(k_poll_interval);
    }
  }
}

}  // namespace

ExitDrain& ExitDrain::instance() noexcept {
  static NeverDestroyed<ExitDrain> drain;
  [[maybe_unused]] static const bool registered = [] {
    static os::LastDriverCalls entry{[]() noexcept { instance().run(); }};
    os::add_last_driver_calls(entry);
    return true;
  }();
  return *drain;
}

void ExitDrain::add(DrainedGate& gate) noexcept { append(gates_, gate); }

void ExitDrain::add(DrainedQueue& queue) noexcept { append(queues_, queue); }

void ExitDrain::add_delayed(DrainedQueue& queue) noexcept { append(delayed_queues_, queue); }

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

bool ExitDrain::end_next_gate() noexcept {
  std::unique_lock hold{lock_};
  if (gates_.next_ == &gates_) {
    return false;
  }
  auto& gate = static_cast<DrainedGate&>(*gates_.next_);
  unlink(gate);
  // The gate still exists: `open` removes it from the list before its last release.
  const auto reference = gate.reference();
  hold.unlock();
  gate.end_unopened();
  return true;
}

bool ExitDrain::drain_next(List& queues, os::Clock::time_point until) noexcept {
  std::unique_lock hold{lock_};
  if (queues.next_ == &queues) {
    return false;
  }
  auto& queue = static_cast<DrainedQueue&>(*queues.next_);
  unlink(queue);
  if (queue.is_known_idle()) {
    return true;
  }
  // Retains the driver's queue in place of `queue`, which may be destroyed once the lock is
  // released. This reference is never released: the process is exiting.
  const auto [calls, handle] = queue.native_queue();
  if (calls.retain_queue(handle) == cl::k_success) {
    hold.unlock();
    drain_queue(calls, handle, until);
  }
  return true;
}

void ExitDrain::run() noexcept {
  while (end_next_gate()) {
  }
  const auto until = os::Clock::now() + k_max_wait;
  while (drain_next(queues_, until) || drain_next(delayed_queues_, until)) {
  }
}

}  // namespace isthmus::opencl
