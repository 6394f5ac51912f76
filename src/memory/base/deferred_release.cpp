// SPDX-License-Identifier: Apache-2.0
#include "memory/base/deferred_release.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "backend/workarounds/delayed_release.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus {
// The lists of objects to be released, and the one thread that releases them. Never destroyed.
class DeferredRelease {
 public:
  class ReleaseBatch;

  // Announces an object that will be pushed later. `wait` blocks while any object is expected.
  void expect() noexcept {
    const LockGuard hold{lock_};
    ++expected_;
  }
  void push(Releasable& object) noexcept {
    const LockGuard hold{lock_};
    start();
    object.next_ready_ = std::exchange(ready_, &object);
    changed_.notify_one();
  }

  // Adds an object to be tried again. It does not count as expected, since it may never be
  // released.
  void on_deferred(Releasable& object) noexcept {
    const LockGuard hold{lock_};
    start();
    if (!is_retrying_) {
      const auto earliest = os::Clock::now() + k_min_pause;
      pause_ = deferred_ == nullptr ? k_min_pause : pause_;
      due_ = deferred_ == nullptr ? earliest : std::min(due_, earliest);
    }
    object.next_ready_ = std::exchange(deferred_, &object);
    changed_.notify_one();
  }

  // Pushes an object. If it is released on demand, adds it to the releases on demand at once,
  // instead of on the library thread, so that the next demand includes it.
  void push_or_defer(Releasable& object) noexcept {
    if (!object.is_released_on_demand() || !add_to_on_demand(object, 1)) {
      push(object);
    }
  }

  [[nodiscard]] bool release_on_demand(std::size_t min_bytes) noexcept {
    if (on_demand_bytes_.load(std::memory_order_relaxed) < min_bytes || on_library_thread() ||
        in_continuation() || os::is_forked_child()) {
      return false;
    }
    const LockGuard hold{lock_};
    const Demand demand{*this};
    const auto until = os::Clock::now() + k_max_query;
    while (has_thread_ && (ready_ != nullptr || is_working_) && ended_.wait_until(lock_, until)) {
    }
    return true;
  }

  void start_if_needed() noexcept {
    if (lacks_thread_.load(std::memory_order_relaxed)) {
      const LockGuard hold{lock_};
      start();
    }
  }

  [[nodiscard]] std::uint64_t release_count() noexcept {
    const LockGuard hold{lock_};
    return released_;
  }
  [[nodiscard]] bool wait(std::uint64_t seen, const os::Deadline& until) noexcept {
    if (is_library_thread_) {
      return false;
    }
    start_if_needed();
    const LockGuard hold{lock_};
    std::optional<Demand> demand;
    if (!on_library_thread()) {
      demand.emplace(*this);
    }
    while (released_ == seen && expected_ != 0 && ended_.wait_until(lock_, until)) {
    }
    return released_ != seen;
  }

 private:
  // While an object of this class exists, a thread of the program is in a library call, so queues
  // may be queried on demand. The destructor waits at most 4 ms for a query in progress.
  // `lock_` is held during construction and destruction.
  class Demand {
   public:
    explicit Demand(DeferredRelease& release) noexcept : release_{release} {
      release_.lock_.assert_held();
      ++release_.demands_;
      release_.start();
      release_.on_demand_bytes_.store(0, std::memory_order_relaxed);
      auto* first = std::exchange(release_.on_demand_, nullptr);
      while (first != nullptr) {
        auto* const next = std::exchange(first, first->next_ready_);
        next->next_ready_ = std::exchange(release_.ready_, next);
      }
      release_.changed_.notify_one();
    }
    ~Demand() {
      release_.lock_.assert_held();
      --release_.demands_;
      const auto until = os::Clock::now() + k_max_query;
      while (release_.is_querying_ && release_.ended_.wait_until(release_.lock_, until)) {
      }
    }
    Demand(const Demand&) = delete;

   private:
    DeferredRelease& release_;
  };

  // If no thread can be started, the objects remain in the lists until the next attempt, which only
  // delays their release.
  void start() noexcept ISTHMUS_REQUIRES(lock_) {
    if (has_thread_) {
      return;
    }
    try {
      start_thread([this] { serve(); }).detach();
      has_thread_ = true;
    } catch (...) {
    }
    lacks_thread_.store(!has_thread_, std::memory_order_relaxed);
  }

  void serve() noexcept {
    is_library_thread_ = true;
    UniqueLock hold{lock_};
    for (;;) {
      is_working_ = false;
      if (demands_ != 0) {
        ended_.notify_all();
      }
      auto* retries = wait_for_work();
      is_working_ = true;
      auto* batch = std::exchange(ready_, nullptr);
      hold.unlock();
      std::vector<ReleaseBatch*> batches;
      while (retries != nullptr) {
        release_first(retries, batches, 0);
      }
      while (batch != nullptr) {
        release_first(batch, batches, 1);
      }
      push_all(batches);
      hold.lock();
      is_retrying_ = false;
    }
  }

  // Subtracts `expected` from the number of expected objects and, if `released`, counts a release.
  void report_release(std::uint64_t expected, bool released) noexcept {
    const LockGuard hold{lock_};
    expected_ -= expected;
    released_ += released ? 1 : 0;
    const bool was_querying = std::exchange(is_querying_, false);
    if (released || expected_ == 0 || was_querying) {
      ended_.notify_all();
    }
  }

  // Removes the first object of a list, and releases it or adds it to the releases on demand.
  // `expected`: 1 if that list's objects are expected, else 0.
  void release_first(Releasable*& first, std::vector<ReleaseBatch*>& batches,
                     std::uint64_t expected) noexcept {
    auto* const next = std::exchange(first, first->next_ready_);
    if (!next->is_released_on_demand() || !add_to_on_demand(*next, expected)) {
      report_release(expected, release_one(*next, batches));
    }
  }
  // Returns false if the object was added to a batch (`ReleaseBatch`), or if the process is ending.
  [[nodiscard]] bool release_one(Releasable& object, std::vector<ReleaseBatch*>& batches) noexcept {
    const os::DriverCall call;
    if (!call) {
      return false;
    }
    const auto queue = object.sole_queue();
    if (queue && join(batches, queue, object)) {
      return false;
    }
    object.release_now();
    return true;
  }
  // Adds an object to the releases on demand. It counts as expected there, since `wait` creates a
  // demand. Returns false, without adding the object, while a demand exists.
  [[nodiscard]] bool add_to_on_demand(Releasable& object, std::uint64_t expected) noexcept {
    const LockGuard hold{lock_};
    if (demands_ != 0) {
      is_querying_ = is_library_thread_;
      return false;
    }
    expected_ += 1 - expected;
    on_demand_bytes_.fetch_add(std::max(object.nbytes(), k_min_bytes), std::memory_order_relaxed);
    object.next_ready_ = std::exchange(on_demand_, &object);
    return true;
  }
  // Adds `object` to the batch of `queue`. Returns false if there is no memory for that.
  [[nodiscard]] bool join(std::vector<ReleaseBatch*>& batches, const Ref<Queue>& queue,
                          Releasable& object) noexcept;
  void push_all(const std::vector<ReleaseBatch*>& batches) noexcept;

  [[nodiscard]] bool is_due() const noexcept ISTHMUS_REQUIRES(lock_) {
    return deferred_ != nullptr && os::Clock::now() >= due_;
  }
  // Waits until objects are ready or due. Returns the deferred objects if they are due, even if
  // other objects are ready; else null.
  Releasable* wait_for_work() noexcept ISTHMUS_REQUIRES(lock_) {
    while (ready_ == nullptr && !is_due()) {
      if (deferred_ == nullptr) {
        changed_.wait(lock_);
      } else {
        const auto until = due_;  // a copy: another thread may change it meanwhile
        changed_.wait_until(lock_, until);
      }
    }
    if (!is_due()) {
      return nullptr;
    }
    is_retrying_ = true;
    pause_ = std::min(pause_ * 2, k_max_pause);
    due_ = os::Clock::now() + pause_;
    return std::exchange(deferred_, nullptr);
  }

  static inline thread_local bool is_library_thread_ = false;
  static constexpr std::chrono::milliseconds k_min_pause{1};
  static constexpr std::chrono::milliseconds k_max_pause{1000};
  static constexpr std::chrono::milliseconds k_max_query{4};
  static constexpr std::size_t k_min_bytes = std::size_t{1} << 20;
  Mutex lock_;  // no driver is called under it
  ConditionVariable changed_;
  ConditionVariable ended_;
  // To be released, or their queues to be queried, now.
  Releasable* ready_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  Releasable* deferred_ ISTHMUS_GUARDED_BY(lock_) = nullptr;   // to be tried again at `due_`
  Releasable* on_demand_ ISTHMUS_GUARDED_BY(lock_) = nullptr;  // wait for a demand
  std::atomic<std::size_t> on_demand_bytes_{0};
  int demands_ ISTHMUS_GUARDED_BY(lock_) = 0;
  bool is_querying_ ISTHMUS_GUARDED_BY(lock_) = false;  // a queue is being queried on demand
  bool is_working_ ISTHMUS_GUARDED_BY(lock_) = false;
  std::chrono::milliseconds pause_ ISTHMUS_GUARDED_BY(lock_){k_min_pause};
  os::Clock::time_point due_ ISTHMUS_GUARDED_BY(lock_);  // valid while `deferred_` is not empty
  // Objects deferred now were deferred before.
  bool is_retrying_ ISTHMUS_GUARDED_BY(lock_) = false;
  std::uint64_t expected_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::uint64_t released_ ISTHMUS_GUARDED_BY(lock_) = 0;
  bool has_thread_ ISTHMUS_GUARDED_BY(lock_) = false;
  std::atomic<bool> lacks_thread_{false};
};

namespace {

DeferredRelease& process_deferred_release() noexcept {
  static NeverDestroyed<DeferredRelease> only;
  return *only;
}

}  // namespace

// The objects of one pass of the library thread that wait for the same queue. The queue is queried
// after all of them were added.
class DeferredRelease::ReleaseBatch final : public Releasable {
 public:
  explicit ReleaseBatch(Ref<Queue> queue) noexcept : queue_{std::move(queue)} {}

  [[nodiscard]] bool is_of(const Queue& queue) const noexcept { return queue_.get() == &queue; }
  [[nodiscard]] bool is_released_on_demand() noexcept override {
    return !was_queried_ && queue_->traits().is_queried_on_demand;
  }
  void add(Releasable& object) noexcept {
    nbytes_ += std::max(object.nbytes(), k_min_bytes);
    object.next_ready_ = std::exchange(first_, &object);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept override { return nbytes_; }
  void release_now() noexcept override {
    if (std::exchange(was_queried_, true)) {
      release_all();
    } else if (!query_queue()) {
      was_queried_ = false;
      on_deferred();
      retry_release(*this);
    }
  }

 private:
  // Queries the queue. Returns false if the queue cannot report its work now, or if there is no
  // memory for the list of events.
  [[nodiscard]] bool query_queue() noexcept try {
    std::vector<Ref<Event>> running;
    const auto result = queue_->unfinished(running);
    const bool is_lost = !result && result.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
    if (!result && !is_lost) {
      return false;
    }
    if (!running.empty()) {
      for_each_object(&Releasable::on_scheduled);
    }
    release_after(*this, running);  // at once if none is running
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void on_deferred() noexcept override { for_each_object(&Releasable::on_deferred); }
  void for_each_object(void (Releasable::*function)() noexcept) noexcept {
    for (auto* each = first_; each != nullptr; each = each->next_ready_) {
      (each->*function)();
    }
  }
  void release_all() noexcept;

  const Ref<Queue> queue_;
  Releasable* first_ = nullptr;
  std::size_t nbytes_ = 0;
  bool was_queried_ = false;
};

// Reports each release separately, so that a waiting thread continues after the first one.
void DeferredRelease::ReleaseBatch::release_all() noexcept {
  while (first_ != nullptr) {
    std::exchange(first_, first_->next_ready_)->release_idle();
    process_deferred_release().report_release(0, true);
  }
  delete this;
}

bool DeferredRelease::join(std::vector<ReleaseBatch*>& batches, const Ref<Queue>& queue,
                           Releasable& object) noexcept try {
  auto found = std::ranges::find_if(batches, [&](auto* each) { return each->is_of(*queue); });
  if (found == batches.end()) {
    batches.reserve(batches.size() + 1);
    batches.push_back(new ReleaseBatch{queue});
    expect();
    found = batches.end() - 1;
  }
  (*found)->add(object);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void DeferredRelease::push_all(const std::vector<ReleaseBatch*>& batches) noexcept {
  for (auto* each : batches) {
    push(*each);
  }
}

namespace {

// Pushes an object to the library thread's list once nothing uses it.
class PushOnCompletion final : public Continuation {
 public:
  explicit PushOnCompletion(Releasable& object) : object_{object} {}
  void run(Event&) noexcept override {
    process_deferred_release().push(object_);
    delete this;
  }

 private:
  Releasable& object_;
};

}  // namespace

void release_after(Releasable& object, const std::vector<Ref<Event>>& running) {
  auto ready = std::make_unique<PushOnCompletion>(object);
  const auto ended = end_of_all(running);
  process_deferred_release().expect();
  ended->on_complete(*ready.release());
}

void defer_release(Releasable& object) noexcept {
  process_deferred_release().expect();
  process_deferred_release().push_or_defer(object);
}

void retry_release(Releasable& object) noexcept { process_deferred_release().on_deferred(object); }

void start_release_thread() noexcept { process_deferred_release().start_if_needed(); }

bool release_on_demand() noexcept {
  release_expired();
  return process_deferred_release().release_on_demand(1);
}

bool release_large_on_demand() noexcept {
  constexpr std::size_t k_min_release_bytes = std::size_t{64} << 20;
  return process_deferred_release().release_on_demand(k_min_release_bytes);
}

std::uint64_t release_count() noexcept { return process_deferred_release().release_count(); }

bool sleep_for_release(std::uint64_t seen, const os::Deadline& until) noexcept {
  return process_deferred_release().wait(seen, until);
}

}  // namespace isthmus
