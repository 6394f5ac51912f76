// SPDX-License-Identifier: Apache-2.0
#include "backend/workarounds/exit_drain.hpp"

#include <chrono>
#include <new>
#include <thread>

#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Limits the wait for all queues together, since an event of other code that the work waits for may
// never be set.
constexpr std::chrono::seconds k_max_wait{5};
constexpr std::chrono::microseconds k_poll_interval{50};

void wait_for(const NativeQueue& queue, void* barrier, os::Clock::time_point until) noexcept {
  while (os::Clock::now() < until && queue.calls->is_running(queue.api, barrier)) {
    std::this_thread::sleep_for(k_poll_interval);
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
  const LockGuard hold{lock_};
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
  const LockGuard hold{lock_};
  unlink(member);
}

bool ExitDrain::end_next_gate() noexcept {
  UniqueLock hold{lock_};
  if (gates_.next_ == &gates_) {
    return false;
  }
  auto& gate = static_cast<DrainedGate&>(*gates_.next_);
  unlink(gate);
  // The gate still exists: it is removed from the list before its last release.
  const auto reference = gate.reference();
  hold.unlock();
  gate.end_unopened();
  return true;
}

// Without memory for the list of barriers, waits for the barrier at once. Submits none after the
// deadline. Does not call the driver's barrier under the lock: it may wait for functions of the
// program that destroy queues.
bool ExitDrain::submit_next_barrier(List& queues, std::vector<Barrier>& barriers,
                                    os::Clock::time_point until) noexcept {
  UniqueLock hold{lock_};
  if (queues.next_ == &queues) {
    return false;
  }
  auto& member = static_cast<DrainedQueue&>(*queues.next_);
  unlink(member);
  if (member.is_known_idle() || os::Clock::now() >= until) {
    return true;
  }
  const auto queue = member.retain_native();
  hold.unlock();
  auto* const event =
      queue.queue != nullptr ? queue.calls->submit_barrier(queue.api, queue.queue) : nullptr;
  if (event == nullptr) {
    return true;
  }
  try {
    barriers.push_back({queue, event});
  } catch (const std::bad_alloc&) {
    wait_for(queue, event, until);
  }
  return true;
}

void ExitDrain::run() noexcept {
  while (end_next_gate()) {
  }
  const auto until = os::Clock::now() + k_max_wait;
  std::vector<Barrier> barriers;
  while (submit_next_barrier(queues_, barriers, until) ||
         submit_next_barrier(delayed_queues_, barriers, until)) {
  }
  for (const auto& each : barriers) {
    wait_for(each.queue, each.event, until);
  }
}

}  // namespace isthmus
