#include "backend/sycl/farewell.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "backend/sycl/queue.hpp"
#include "core/never_destroyed.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {
namespace {

// For all queues together.
constexpr std::chrono::seconds k_longest_wait{5};
constexpr std::chrono::microseconds k_between_looks{50};

bool is_running(int status) noexcept {
  return status != dp::k_status_complete && status != dp::k_status_unknown;
}

}  // namespace

farewell& farewell::only() noexcept {
  static never_destroyed<farewell> made;
  [[maybe_unused]] static const bool registered = [] {
    static os::last_driver_calls ours{[]() noexcept { only().run(); }};
    os::add_last_driver_calls(ours);
    return true;
  }();
  return *made;
}

void farewell::add(const queue& open) {
  const std::lock_guard hold{lock_};
  queues_.push_back(&open);
}

void farewell::remove(const queue& open) noexcept {
  const std::lock_guard hold{lock_};
  std::erase(queues_, &open);
}

// A barrier goes to all of them first: they run side by side.
void farewell::run() noexcept try {
  std::vector<std::pair<const api*, event_reference>> ends;
  {
    const std::lock_guard hold{lock_};
    for (const auto* open : queues_) {
      ends.emplace_back(&open->calls(), open->calls().barrier(open->reference()));
    }
  }
  const auto until = os::clock::now() + k_longest_wait;
  for (const auto& [calls, end] : ends) {
    while (end != nullptr && is_running(calls->event_status(end)) && os::clock::now() < until) {
      std::this_thread::sleep_for(k_between_looks);
    }
    if (end != nullptr) {
      calls->delete_event(end);
    }
  }
} catch (const std::bad_alloc&) {
  // The process ends all the same.
}

}  // namespace isthmus::sycl
