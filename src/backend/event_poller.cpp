// SPDX-License-Identifier: Apache-2.0
#include "backend/event_poller.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <type_traits>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"

namespace isthmus {
namespace {

constexpr std::chrono::microseconds k_min_poll_interval{20};
constexpr std::chrono::microseconds k_max_poll_interval{1000};
// The longest sleep of a waiting thread while no start of the polling thread was attempted yet: an
// attempt during that sleep may fail.
constexpr std::chrono::milliseconds k_max_unpolled_wait{100};

}  // namespace

// An intrusive list, so that adding an event allocates nothing. Holds a reference to each event.
class PollList {
 public:
  PollList() noexcept = default;
  PollList(const PollList&) = delete;
  PollList& operator=(const PollList&) = delete;
  ~PollList() = default;  // empty, or owned by a thread that never ends

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void add(Pollable& pending) noexcept {
    pending.begin_polling();
    pending.next_polled_ = std::exchange(first_, &pending);
  }
  void splice(PollList& other) noexcept {
    auto** end = &other.first_;
    while (*end != nullptr) {
      end = &(*end)->next_polled_;
    }
    *end = first_;
    first_ = std::exchange(other.first_, nullptr);
  }
  // Queries each event and removes those that have completed. Returns whether any was removed.
  bool poll() noexcept {
    bool any = false;
    for (auto** link = &first_; *link != nullptr;) {
      auto* const each = *link;
      if (each->poll_once()) {
        link = &each->next_polled_;
      } else {
        *link = each->next_polled_;
        each->end_polling();
        any = true;
      }
    }
    return any;
  }

 private:
  Pollable* first_ = nullptr;
};

namespace {

struct PolledEvents {
  Mutex lock;
  ConditionVariable changed;
  PollList added ISTHMUS_GUARDED_BY(lock);
  std::atomic<bool> started{false};
  std::atomic<bool> start_failed{false};
};

static_assert(std::is_nothrow_default_constructible_v<PolledEvents>);

// Never destroyed, since it must outlive every thread.
PolledEvents& shared() noexcept {
  static NeverDestroyed<PolledEvents> instance;
  return *instance;
}

void wait_for_added(PolledEvents& events) ISTHMUS_REQUIRES(events.lock) {
  while (events.added.empty()) {
    events.changed.wait(events.lock);
  }
}
void wait_for_added(PolledEvents& events, os::Clock::time_point until)
    ISTHMUS_REQUIRES(events.lock) {
  while (events.added.empty() && events.changed.wait_until(events.lock, until)) {
  }
}

// Queries events outside the lock: completion runs continuations, which may call
// `poll_until_complete` on this thread.
void serve() {
  auto& events = shared();
  PollList watched;
  auto sleep = k_min_poll_interval;
  for (;;) {
    {
      const LockGuard hold{events.lock};
      watched.empty() ? wait_for_added(events) : wait_for_added(events, os::Clock::now() + sleep);
      sleep = events.added.empty() ? sleep : k_min_poll_interval;
      watched.splice(events.added);
    }
    sleep = watched.poll() ? k_min_poll_interval : std::min(sleep + sleep / 8, k_max_poll_interval);
  }
}

void start(PolledEvents& events) noexcept ISTHMUS_REQUIRES(events.lock) try {
  if (!events.started.load(std::memory_order_relaxed)) {
    start_thread(serve).detach();
    events.started.store(true, std::memory_order_relaxed);
  }
  events.start_failed.store(false, std::memory_order_relaxed);
} catch (const std::exception&) {
  events.start_failed.store(true, std::memory_order_relaxed);
}

}  // namespace

void poll_until_complete(Pollable& pending) noexcept {
  auto& events = shared();
  const LockGuard hold{events.lock};
  events.added.add(pending);
  start(events);
  events.changed.notify_one();
}

void ensure_poller_started() noexcept {
  auto& events = shared();
  if (events.start_failed.load(std::memory_order_relaxed)) {
    const LockGuard hold{events.lock};
    start(events);
  }
}

os::Deadline next_poll_deadline(const os::Deadline& until) noexcept {
  const auto& events = shared();
  if (events.started.load(std::memory_order_relaxed)) {
    return until;
  }
  const bool is_needed = events.start_failed.load(std::memory_order_relaxed);
  const auto next = os::Clock::now() + (is_needed ? k_max_poll_interval : k_max_unpolled_wait);
  return until && *until < next ? until : os::Deadline{next};
}

void poll_without_thread() noexcept {
  ensure_poller_started();
  auto& events = shared();
  PollList polled;
  {
    const LockGuard hold{events.lock};
    if (events.started.load(std::memory_order_relaxed)) {
      return;
    }
    polled.splice(events.added);
  }
  polled.poll();
  const LockGuard hold{events.lock};
  events.added.splice(polled);
  events.changed.notify_one();
}

}  // namespace isthmus
