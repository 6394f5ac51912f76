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

// Far longer than the scheduler delays a runnable thread.
constexpr std::chrono::seconds k_release_delay{1};
// Scans by each `release_later`. An entry needs two before it is released, so that expired entries
// are released faster than new ones arrive.
constexpr std::size_t k_scans_per_add = 4;
constexpr std::size_t k_scans_per_call = 64;

using EventList = std::list<Ref<Event>>;

struct DelayedRelease {
  std::uintptr_t key;
  EventList running;
  std::shared_ptr<void> object;
  os::Clock::time_point idle_since;  // or earlier, if nothing is running
  bool is_being_queried = false;     // a thread has taken `running` and is querying it
};

// The oldest entries are in front. An idle entry at the front may delay ended ones after it until
// it expires. Nothing is queried or released under the lock.
class DelayedReleases {
 public:
  void add(std::uintptr_t key, WaitList running, std::shared_ptr<void> object) {
    std::list<DelayedRelease> new_entry;
    new_entry.push_back(
        {key, {running.begin(), running.end()}, std::move(object), os::Clock::now()});
    const std::lock_guard hold{lock_};
    const auto [place, is_new] = entry_by_key_.try_emplace(key, new_entry.begin());
    if (is_new) {
      entries_.splice(entries_.end(), new_entry);
      count_.store(entries_.size(), std::memory_order_relaxed);
    } else {
      renew(*place->second, new_entry.front());
    }
  }  // releases what was replaced, outside the lock

  // Not recursive, since releasing an object may add another one. Does nothing inside a
  // continuation: the driver call that runs it may still use the queue that was added.
  void scan(std::size_t count) noexcept {
    if (is_scanning_ || in_continuation()) {
      return;
    }
    is_scanning_ = true;
    for (auto remaining = std::min(count, size()); remaining != 0 && scan_first(); --remaining) {
    }
    is_scanning_ = false;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  void renew(DelayedRelease& entry, DelayedRelease& replacement) noexcept {
    entry.running.splice(entry.running.end(), replacement.running);
    entry.object.swap(replacement.object);
    move_to_back(entry);
  }
  void move_to_back(DelayedRelease& entry) noexcept {
    entry.idle_since = os::Clock::now();
    entries_.splice(entries_.end(), entries_, entry_by_key_.find(entry.key)->second);
  }

  // Returns false if the first entry stays, and with it all idle ones after it.
  bool scan_first() noexcept {
    std::shared_ptr<void> released;
    std::unique_lock hold{lock_};
    if (entries_.empty()) {
      return false;
    }
    auto& first = entries_.front();
    if (first.is_being_queried) {
      move_to_back(first);
    } else if (!first.running.empty()) {
      query_pending(first, hold);
    } else if (os::Clock::now() - first.idle_since < k_release_delay) {
      return false;
    } else {
      released = std::move(first.object);
      entry_by_key_.erase(first.key);
      entries_.pop_front();
      count_.store(entries_.size(), std::memory_order_relaxed);
    }
    hold.unlock();
    return true;
  }
  void query_pending(DelayedRelease& entry, std::unique_lock<std::mutex>& hold) noexcept {
    EventList running;
    running.swap(entry.running);
    entry.is_being_queried = true;
    move_to_back(entry);
    hold.unlock();
    running.remove_if([](const Ref<Event>& each) { return !each->pending(); });
    hold.lock();
    entry.running.splice(entry.running.end(), running);
    entry.is_being_queried = false;
    move_to_back(entry);
  }

  static inline thread_local bool is_scanning_ = false;
  std::mutex lock_;
  std::list<DelayedRelease> entries_;
  std::unordered_map<std::uintptr_t, std::list<DelayedRelease>::iterator> entry_by_key_;
  std::atomic<std::size_t> count_{0};
};

DelayedReleases& delayed_releases() noexcept {
  static NeverDestroyed<DelayedReleases> instance;
  return *instance;
}

}  // namespace

void release_later(std::uintptr_t key, WaitList running, std::shared_ptr<void> object) {
  delayed_releases().add(key, running, std::move(object));
  delayed_releases().scan(k_scans_per_add);
}

void release_expired() noexcept {
  if (delayed_releases().size() != 0 && !os::is_forked_child()) {
    delayed_releases().scan(k_scans_per_call);
  }
}

}  // namespace isthmus
