// SPDX-License-Identifier: Apache-2.0
#include "backend/polled_event.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "backend/event_poller.hpp"

namespace isthmus {
namespace {

// A wait polls continuously at first, then at intervals of 1/128 of the time waited so far. CUDA's
// own blocking wait wakes up to 0.4 ms late (H200), which is 2 % of a copy of 1 GiB; by default
// CUDA would poll continuously to the end.
constexpr std::chrono::milliseconds k_ask_before_sleeping{1};
constexpr int k_sleeps = 128;
constexpr std::chrono::milliseconds k_longest_poll_sleep{1};

}  // namespace

PolledEvent::PolledEvent() noexcept { start_watching_again(); }

// Returns the bits that were set before.
std::uint32_t PolledEvent::end_holding() noexcept {
  const auto before = progress_.fetch_or(k_put, std::memory_order_acq_rel);
  if ((before & k_awaited) != 0) {
    os::futex_wake_all(progress_);
  }
  return before;
}

void PolledEvent::mark_put() noexcept {
  if ((end_holding() & k_armed) != 0) {
    watch();
  }
}

void PolledEvent::refuse(Error why) noexcept {
  complete(std::move(why));
  end_holding();
}

bool PolledEvent::wait_till_put(const os::Deadline& until) noexcept {
  while (!is_put()) {
    const auto seen = progress_.fetch_or(k_awaited, std::memory_order_acq_rel) | k_awaited;
    if ((seen & k_put) == 0 && !os::futex_wait(progress_, seen, until)) {
      return is_put();
    }
  }
  return true;
}

void PolledEvent::arm() noexcept {
  const auto before = progress_.fetch_or(k_armed, std::memory_order_acq_rel);
  if ((before & (k_put | k_armed)) == k_put) {
    watch();
  }
}

void PolledEvent::watch() noexcept { watch_till_complete(*this); }

void PolledEvent::block(const os::Deadline& until) noexcept {
  if (!wait_till_put(until)) {
    return;
  }
  const auto began = os::Clock::now();
  for (auto now = began; !until || now < *until; now = os::Clock::now()) {
    refresh();
    if (settled()) {
      return;
    }
    if (now - began < k_ask_before_sleeping) {
      std::this_thread::yield();
    } else {
      const auto sleep =
          std::min((now - began) / k_sleeps, os::Clock::duration{k_longest_poll_sleep});
      std::this_thread::sleep_until(std::min(until.value_or(now + sleep), now + sleep));
    }
  }
}

}  // namespace isthmus
