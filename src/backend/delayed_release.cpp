// SPDX-License-Identifier: Apache-2.0
#include "backend/delayed_release.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/never_destroyed.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Far longer than the scheduler keeps a runnable thread waiting.
constexpr std::chrono::seconds k_lingers{1};
// Inspections by each `linger`. An entry needs two before it is released, so that expired entries
// are released faster than new ones arrive.
constexpr std::size_t k_looks_of_one = 4;
constexpr std::size_t k_looks_of_a_call = 64;

using EventList = std::list<Ref<Event>>;

struct DelayedRelease {
  std::uintptr_t key;
  EventList running;
  std::shared_ptr<void> held;
  os::Clock::time_point idle_since;  // or earlier, if nothing is running
  bool is_being_asked_for = false;   // a thread has taken `running` and is querying it
};

// The oldest entries are in front. An idle entry at the front may hide ended ones after it for as
// long as it lingers. Nothing is queried or released under the lock.
class DelayedReleases {
 public:
  void add(std::uintptr_t key, WaitList running, std::shared_ptr<void> held) {
    std::list<DelayedRelease> one;
    one.push_back({key, {running.begin(), running.end()}, std::move(held), os::Clock::now()});
    const std::lock_guard hold{lock_};
    const auto [place, is_new] = places_.try_emplace(key, one.begin());
    if (is_new) {
      guests_.splice(guests_.end(), one);
      count_.store(guests_.size(), std::memory_order_relaxed);
    } else {
      renew(*place->second, one.front());
    }
  }  // releases what was replaced, outside the lock

  // Not recursive, since a released object may linger again. Does nothing inside a continuation:
  // the driver call that runs it may hold what starts to linger.
  void look_at_first(std::size_t count) noexcept {
    if (is_looking_ || in_continuation()) {
      return;
    }
    is_looking_ = true;
    for (auto left = std::min(count, size()); left != 0 && look_at_first(); --left) {
    }
    is_looking_ = false;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  void renew(DelayedRelease& known, DelayedRelease& with) noexcept {
    known.running.splice(known.running.end(), with.running);
    known.held.swap(with.held);
    put_last(known);
  }
  void put_last(DelayedRelease& known) noexcept {
    known.idle_since = os::Clock::now();
    guests_.splice(guests_.end(), guests_, places_.find(known.key)->second);
  }

  // Returns false if the first entry stays, and with it all idle ones after it.
  bool look_at_first() noexcept {
    std::shared_ptr<void> over;
    std::unique_lock hold{lock_};
    if (guests_.empty()) {
      return false;
    }
    auto& first = guests_.front();
    if (first.is_being_asked_for) {
      put_last(first);
    } else if (!first.running.empty()) {
      ask_for(first, hold);
    } else if (os::Clock::now() - first.idle_since < k_lingers) {
      return false;
    } else {
      over = std::move(first.held);
      places_.erase(first.key);
      guests_.pop_front();
      count_.store(guests_.size(), std::memory_order_relaxed);
    }
    hold.unlock();
    return true;
  }
  void ask_for(DelayedRelease& asked, std::unique_lock<std::mutex>& hold) noexcept {
    EventList running;
    running.swap(asked.running);
    asked.is_being_asked_for = true;
    put_last(asked);
    hold.unlock();
    running.remove_if([](const Ref<Event>& each) { return !each->pending(); });
    hold.lock();
    asked.running.splice(asked.running.end(), running);
    asked.is_being_asked_for = false;
    put_last(asked);
  }

  static inline thread_local bool is_looking_ = false;
  std::mutex lock_;
  std::list<DelayedRelease> guests_;
  std::unordered_map<std::uintptr_t, std::list<DelayedRelease>::iterator> places_;
  std::atomic<std::size_t> count_{0};
};

DelayedReleases& process_guests() noexcept {
  static NeverDestroyed<DelayedReleases> only;
  return *only;
}

}  // namespace

void linger(std::uintptr_t key, WaitList running, std::shared_ptr<void> held) {
  process_guests().add(key, running, std::move(held));
  process_guests().look_at_first(k_looks_of_one);
}

void end_lingering() noexcept {
  if (process_guests().size() != 0 && !os::is_forked_child()) {
    process_guests().look_at_first(k_looks_of_a_call);
  }
}

}  // namespace isthmus
