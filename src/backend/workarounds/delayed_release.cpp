// SPDX-License-Identifier: Apache-2.0
#include "backend/workarounds/delayed_release.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <unordered_map>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "os/futex.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// Far longer than the scheduler delays a runnable thread.
constexpr std::chrono::seconds k_release_delay{1};
// The number of entries that each `release_later` scans. An entry is scanned twice before it is
// released, so expired entries are released faster than new ones are added.
constexpr std::size_t k_scans_per_add = 4;
constexpr std::size_t k_scans_per_call = 64;

using EventList = std::list<Ref<Event>>;

struct DelayedRelease {
  std::uintptr_t key;
  EventList running;
  std::shared_ptr<void> object;
  os::Clock::time_point idle_since;  // an upper bound; valid if `running` is empty
  bool is_being_queried = false;     // a thread has moved `running` out and queries it
};

// Entries are in the order of their last addition or query, the oldest first. Until an idle entry
// at the front expires, the entries after it are not scanned. Nothing is queried or released under
// the lock.
class DelayedReleases {
 public:
  void add(std::uintptr_t key, WaitList running, std::shared_ptr<void> object) {
    std::list<DelayedRelease> new_entry;
    new_entry.push_back(
        {key, {running.begin(), running.end()}, std::move(object), os::Clock::now()});
    const LockGuard hold{lock_};
    const auto [position, is_new] = entry_by_key_.try_emplace(key, new_entry.begin());
    if (is_new) {
      entries_.splice(entries_.end(), new_entry);
      count_.store(entries_.size(), std::memory_order_relaxed);
    } else {
      renew(*position->second, new_entry.front());
    }
  }  // `new_entry` releases the replaced object after the lock was released

  // Does nothing in a recursive call, which happens if releasing an object adds another one. Does
  // nothing inside a continuation either: the driver call that runs the continuation may still use
  // the queue that was added.
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
  void renew(DelayedRelease& entry, DelayedRelease& replacement) noexcept ISTHMUS_REQUIRES(lock_) {
    entry.running.splice(entry.running.end(), replacement.running);
    entry.object.swap(replacement.object);
    move_to_back(entry);
  }
  void move_to_back(DelayedRelease& entry) noexcept ISTHMUS_REQUIRES(lock_) {
    entry.idle_since = os::Clock::now();
    entries_.splice(entries_.end(), entries_, entry_by_key_.find(entry.key)->second);
  }

  // Returns false if the first entry is idle but has not expired. Then no later idle entry has
  // expired either.
  bool scan_first() noexcept {
    std::shared_ptr<void> released;
    const LockGuard hold{lock_};
    if (entries_.empty()) {
      return false;
    }
    auto& first = entries_.front();
    if (first.is_being_queried) {
      move_to_back(first);
    } else if (!first.running.empty()) {
      query_pending(first);
    } else if (os::Clock::now() - first.idle_since < k_release_delay) {
      return false;
    } else {
      released = std::move(first.object);
      entry_by_key_.erase(first.key);
      entries_.pop_front();
      count_.store(entries_.size(), std::memory_order_relaxed);
    }
    return true;
  }
  void query_pending(DelayedRelease& entry) noexcept ISTHMUS_REQUIRES(lock_) {
    EventList running;
    running.swap(entry.running);
    entry.is_being_queried = true;
    move_to_back(entry);
    lock_.unlock();
    running.remove_if([](const Ref<Event>& each) { return !each->pending(); });
    lock_.lock();
    entry.running.splice(entry.running.end(), running);
    entry.is_being_queried = false;
    move_to_back(entry);
  }

  static inline thread_local bool is_scanning_ = false;
  Mutex lock_;
  std::list<DelayedRelease> entries_ ISTHMUS_GUARDED_BY(lock_);
  std::unordered_map<std::uintptr_t, std::list<DelayedRelease>::iterator> entry_by_key_
      ISTHMUS_GUARDED_BY(lock_);
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
