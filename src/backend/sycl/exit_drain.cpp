// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/exit_drain.hpp"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "core/never_destroyed.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {
namespace {

// Limits the wait for all queues together.
constexpr std::chrono::seconds k_max_wait{5};
constexpr std::chrono::microseconds k_poll_interval{50};

bool is_running(int status) noexcept {
  return status != dp::k_status_complete && status != dp::k_status_unknown;
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

ExitDrain::Position ExitDrain::add(const Api& calls, QueueReference queue) {
  const std::lock_guard hold{lock_};
  return queues_.insert(queues_.end(), {&calls, queue});
}

void ExitDrain::remove(Position position) noexcept {
  const std::lock_guard hold{lock_};
  queues_.erase(position);
}

// Submits a barrier to every queue first, so that they are drained in parallel. Copies the
// references, since the queues may be destroyed meanwhile.
void ExitDrain::run() noexcept try {
  std::vector<std::pair<const Api*, OwnedQueue>> queues;
  {
    const std::lock_guard hold{lock_};
    for (const auto& [calls, queue] : queues_) {
      queues.emplace_back(calls, OwnedQueue{*calls, calls->copy_queue(queue)});
    }
  }
  std::vector<std::pair<const Api*, EventReference>> ends;
  for (const auto& [calls, queue] : queues) {
    ends.emplace_back(calls, queue ? calls->barrier(queue.get()) : nullptr);
  }
  const auto until = os::Clock::now() + k_max_wait;
  for (const auto& [calls, end] : ends) {
    while (end != nullptr && is_running(calls->event_status(end)) && os::Clock::now() < until) {
      std::this_thread::sleep_for(k_poll_interval);
    }
    if (end != nullptr) {
      calls->delete_event(end);
    }
  }
} catch (const std::bad_alloc&) {
  // Without memory the remaining queues are not drained.
}

}  // namespace isthmus::sycl
