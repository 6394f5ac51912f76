#include "backend/cuda/event.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "backend/cuda/current.hpp"
#include "backend/cuda/watcher.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

// A wait asks all the time at first, then after 1/128 of the time that it has waited. The driver's
// own sleep wakes up to 0.4 ms late (H200), which is 2 % of a copy of 1 GiB; unless told otherwise
// it would ask for ever.
constexpr std::chrono::milliseconds k_ask_before_sleeping{1};
constexpr int k_sleeps = 128;
constexpr std::chrono::milliseconds k_longest_sleep{1};

}  // namespace

operation::~operation() {
  const bool is_plain = !knows_time_;
  if (os::is_forked_child() || (is_plain && where_.events().keep(handle_)) ||
      os::drivers_are_gone()) {
    return;
  }
  if (const made_current here{where_.calls(), where_.known_primary()};
      here.outcome() == cu::k_success) {
    where_.calls().destroy_event(handle_);
  }
}

// To half a microsecond.
result<std::int64_t> operation::elapsed_since(event& earlier) {
  auto* const begin = dynamic_cast<operation*>(&earlier);
  if (begin == nullptr || &begin->where_ != &where_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the earlier event is not one of {}: mark the beginning and the end on queues of "
                "one device",
                where_.properties().filter);
  }
  if (!knows_time_ || !begin->knows_time_) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "an operation's own event keeps no time on {}: mark the queue before and behind it",
                where_.properties().filter);
  }
  if (!succeeded() || !begin->succeeded()) {
    return failed_events_have_no_time();
  }
  if (os::drivers_are_gone()) {
    return process_is_ending();
  }
  const made_current here{where_.calls(), where_.known_primary()};
  float milliseconds = 0;
  const auto outcome = here.outcome() == cu::k_success
                           ? where_.calls().elapsed(&milliseconds, begin->handle_, handle_)
                           : here.outcome();
  if (outcome != cu::k_success) {
    return call_failed("cuEventElapsedTime", outcome);
  }
  return std::llround(double{milliseconds} * 1e6);
}

// What had come to pass before.
std::uint32_t operation::end_holding() noexcept {
  const auto before = progress_.fetch_or(k_put, std::memory_order_acq_rel);
  if ((before & k_awaited) != 0) {
    os::futex_wake_all(progress_);
  }
  return before;
}

void operation::mark_put() noexcept {
  if ((end_holding() & k_armed) != 0) {
    watch();
  }
}

void operation::refuse(error why) noexcept {
  complete(std::move(why));
  end_holding();
}

bool operation::wait_till_put(const os::deadline& until) noexcept {
  while (!is_put()) {
    const auto seen = progress_.fetch_or(k_awaited, std::memory_order_acq_rel) | k_awaited;
    if ((seen & k_put) == 0 && !os::futex_wait(progress_, seen, until)) {
      return is_put();
    }
  }
  return true;
}

// An event that was never recorded would count as one that has ended.
void operation::refresh() noexcept {
  if (!is_put()) {
    return;
  }
  if (os::drivers_are_gone()) {
    complete(process_is_ending());
    return;
  }
  const made_current here{where_.calls(), where_.known_primary()};
  const auto outcome =
      here.outcome() == cu::k_success ? where_.calls().query(handle_) : here.outcome();
  // While somebody captures an older driver tells nothing, and the operation may still run.
  if (outcome != cu::k_error_NOT_READY && !is_of_capture(outcome)) {
    complete(outcome == cu::k_success ? error{} : call_failed("the operation", outcome));
  }
}

void operation::arm() noexcept {
  const auto before = progress_.fetch_or(k_armed, std::memory_order_acq_rel);
  if ((before & (k_put | k_armed)) == k_put) {
    watch();
  }
}

void operation::watch() noexcept {
  if (!watcher::watch(*this)) {
    block(std::nullopt);  // no thread for it
  }
}

void operation::block(const os::deadline& until) noexcept {
  if (!wait_till_put(until)) {
    return;
  }
  const auto began = os::clock::now();
  for (auto now = began; !until || now < *until; now = os::clock::now()) {
    refresh();
    if (settled()) {
      return;
    }
    if (now - began < k_ask_before_sleeping) {
      std::this_thread::yield();
    } else {
      const auto sleep = std::min((now - began) / k_sleeps, os::clock::duration{k_longest_sleep});
      std::this_thread::sleep_until(std::min(until.value_or(now + sleep), now + sleep));
    }
  }
}

}  // namespace isthmus::cuda
