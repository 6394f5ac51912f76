// SPDX-License-Identifier: Apache-2.0
#include "backend/event_poller.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

#include "core/never_destroyed.hpp"
#include "core/threads.hpp"

namespace isthmus {
namespace {

constexpr std::chrono::microseconds k_shortest_sleep{20};
constexpr std::chrono::microseconds k_longest_sleep{1000};
// Longest sleep of a waiting thread before the first attempt to start the polling thread. That
// attempt may fail.
constexpr std::chrono::milliseconds k_longest_wait{100};

}  // namespace

// An intrusive list, so that watching an event allocates nothing. Holds a reference to each event.
class PollList {
 public:
  PollList() noexcept = default;
  PollList(const PollList&) = delete;
  PollList& operator=(const PollList&) = delete;
  ~PollList() = default;  // empty, or owned by a thread that never ends

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void add(PolledEvent& pending) noexcept {
    pending.retain();
    pending.next_watched_ = std::exchange(first_, &pending);
  }
  void take_over(PollList& other) noexcept {
    auto** end = &other.first_;
    while (*end != nullptr) {
      end = &(*end)->next_watched_;
    }
    *end = first_;
    first_ = std::exchange(other.first_, nullptr);
  }
  // Queries each event and drops those that have completed. Returns whether any had.
  bool look() noexcept {
    bool any = false;
    for (auto** link = &first_; *link != nullptr;) {
      auto* const each = *link;
      if (each->pending()) {
        link = &each->next_watched_;
      } else {
        *link = each->next_watched_;
        each->release();
        any = true;
      }
    }
    return any;
  }

 private:
  PolledEvent* first_ = nullptr;
};

namespace {

struct PolledEvents {
  std::mutex lock;
  std::condition_variable changed;
  PollList given;
  std::atomic<bool> started{false};
  std::atomic<bool> lacks_thread{false};
};

static_assert(std::is_nothrow_default_constructible_v<PolledEvents>);

// Never destroyed, since it must outlive every thread.
PolledEvents& shared() noexcept {
  static NeverDestroyed<PolledEvents> only;
  return *only;
}

// Events are queried outside the lock: completion may run anything, including a call of
// `watch_till_complete` on this thread.
void serve() {
  auto& from = shared();
  PollList watched;
  auto sleep = k_shortest_sleep;
  const auto something_new = [&] { return !from.given.empty(); };
  for (;;) {
    {
      std::unique_lock hold{from.lock};
      if (watched.empty()) {
        from.changed.wait(hold, something_new);
      } else {
        from.changed.wait_for(hold, sleep, something_new);
      }
      sleep = something_new() ? k_shortest_sleep : sleep;
      watched.take_over(from.given);
    }
    sleep = watched.look() ? k_shortest_sleep : std::min(sleep + sleep / 8, k_longest_sleep);
  }
}

// Pre: the lock is held.
void start(PolledEvents& events) noexcept try {
  if (!events.started.load(std::memory_order_relaxed)) {
    start_thread(serve).detach();
    events.started.store(true, std::memory_order_relaxed);
  }
  events.lacks_thread.store(false, std::memory_order_relaxed);
} catch (const std::exception&) {
  events.lacks_thread.store(true, std::memory_order_relaxed);
}

}  // namespace

void watch_till_complete(PolledEvent& pending) noexcept {
  auto& to = shared();
  const std::lock_guard hold{to.lock};
  to.given.add(pending);
  start(to);
  to.changed.notify_one();
}

void start_watching_again() noexcept {
  auto& to = shared();
  if (to.lacks_thread.load(std::memory_order_relaxed)) {
    const std::lock_guard hold{to.lock};
    start(to);
  }
}

os::Deadline until_next_look(const os::Deadline& until) noexcept {
  const auto& to = shared();
  if (to.started.load(std::memory_order_relaxed)) {
    return until;
  }
  const bool is_needed = to.lacks_thread.load(std::memory_order_relaxed);
  const auto next = os::Clock::now() + (is_needed ? k_longest_sleep : k_longest_wait);
  return until && *until < next ? until : os::Deadline{next};
}

void look_without_thread() noexcept {
  start_watching_again();
  auto& to = shared();
  PollList looked_at;
  {
    const std::lock_guard hold{to.lock};
    if (to.started.load(std::memory_order_relaxed)) {
      return;
    }
    looked_at.take_over(to.given);
  }
  looked_at.look();
  const std::lock_guard hold{to.lock};
  to.given.take_over(looked_at);
  to.changed.notify_one();
}

}  // namespace isthmus
