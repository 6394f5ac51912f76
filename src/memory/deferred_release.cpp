// SPDX-License-Identifier: Apache-2.0
#include "memory/deferred_release.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "backend/delayed_release.hpp"
#include "core/never_destroyed.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus {
// The lists of objects to be released, and the one thread that releases them. Never destroyed.
class DeferredRelease {
 public:
  class ReleaseBatch;

  // Announces an object that will be pushed later. While any is expected, `wait` waits.
  void expect() noexcept {
    const std::lock_guard hold{lock_};
    ++expected_;
  }
  void push(Releasable& object) noexcept {
    const std::lock_guard hold{lock_};
    start();
    object.next_ready_ = std::exchange(ready_, &object);
    changed_.notify_one();
  }

  // These do not count as expected, since they may never be released.
  void on_deferred(Releasable& object) noexcept {
    const std::lock_guard hold{lock_};
    start();
    if (!is_trying_again_) {
      const auto soon = os::Clock::now() + k_least_pause;
      pause_ = put_off_ == nullptr ? k_least_pause : pause_;
      due_ = put_off_ == nullptr ? soon : std::min(due_, soon);
    }
    object.next_ready_ = std::exchange(put_off_, &object);
    changed_.notify_one();
  }

  // Joins the releases on demand at once, not on the library thread, so the next demand finds it.
  void push_or_leave(Releasable& object) noexcept {
    if (!object.is_released_on_demand() || !leave_for_demand(object, 1)) {
      push(object);
    }
  }

  [[nodiscard]] bool release_on_demand(std::size_t least_bytes) noexcept {
    if (on_demand_bytes_.load(std::memory_order_relaxed) < least_bytes || on_library_thread() ||
        in_continuation() || os::is_forked_child()) {
      return false;
    }
    std::unique_lock hold{lock_};
    const Demand from_here{*this, hold};
    const auto has_asked = [&] { return !has_thread_ || (ready_ == nullptr && !is_at_work_); };
    ended_.wait_for(hold, k_longest_ask, has_asked);
    return true;
  }

  void start_late() noexcept {
    if (lacks_thread_.load(std::memory_order_relaxed)) {
      const std::lock_guard hold{lock_};
      start();
    }
  }

  [[nodiscard]] std::uint64_t release_now() noexcept {
    const std::lock_guard hold{lock_};
    return let_go_;
  }
  [[nodiscard]] bool wait(std::uint64_t seen, const os::Deadline& until) noexcept {
    if (is_reaper_) {
      return false;
    }
    start_late();
    std::unique_lock hold{lock_};
    std::optional<Demand> from_here;
    if (!on_library_thread()) {
      from_here.emplace(*this, hold);
    }
    const auto is_over = [&] { return let_go_ != seen || expected_ == 0; };
    if (until) {
      ended_.wait_until(hold, *until, is_over);
    } else {
      ended_.wait(hold, is_over);
    }
    return let_go_ != seen;
  }

 private:
  // While one exists, a thread of the program is in a library call, so queues may be queried on
  // demand. Its end waits 4 ms at most for a query in progress. Pre: `lock_` is held at both ends.
  class Demand {
   public:
    Demand(DeferredRelease& all, std::unique_lock<std::mutex>& hold) noexcept
        : all_{all}, hold_{hold} {
      ++all_.demands_;
      all_.start();
      all_.on_demand_bytes_.store(0, std::memory_order_relaxed);
      auto* first = std::exchange(all_.on_demand_, nullptr);
      while (first != nullptr) {
        auto* const next = std::exchange(first, first->next_ready_);
        next->next_ready_ = std::exchange(all_.ready_, next);
      }
      all_.changed_.notify_one();
    }
    ~Demand() {
      --all_.demands_;
      all_.ended_.wait_for(hold_, k_longest_ask, [this] { return !all_.is_asking_; });
    }
    Demand(const Demand&) = delete;

   private:
    DeferredRelease& all_;
    std::unique_lock<std::mutex>& hold_;
  };

  // If no thread can be started, objects stay in the lists until the next try: only memory waits.
  void start() noexcept {
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
    is_reaper_ = true;
    std::unique_lock hold{lock_};
    for (;;) {
      is_at_work_ = false;
      if (demands_ != 0) {
        ended_.notify_all();
      }
      auto* again = wait_for_work(hold);
      is_at_work_ = true;
      auto* batch = std::exchange(ready_, nullptr);
      hold.unlock();
      std::vector<ReleaseBatch*> batches;
      while (again != nullptr) {
        let_first_go(again, batches, 0);
      }
      while (batch != nullptr) {
        let_first_go(batch, batches, 1);
      }
      push_all(batches);
      hold.lock();
      is_trying_again_ = false;
    }
  }

  // Notes that `expected` less objects are expected and, if `went`, that one was released.
  void tell(std::uint64_t expected, bool went) noexcept {
    const std::lock_guard hold{lock_};
    expected_ -= expected;
    let_go_ += went ? 1 : 0;
    const bool was_asking = std::exchange(is_asking_, false);
    if (went || expected_ == 0 || was_asking) {
      ended_.notify_all();
    }
  }

  // Handles the first object of a list. `expected`: 1 if that list's objects are expected, else 0.
  void let_first_go(Releasable*& first, std::vector<ReleaseBatch*>& batches,
                    std::uint64_t expected) noexcept {
    auto* const next = std::exchange(first, first->next_ready_);
    if (!next->is_released_on_demand() || !leave_for_demand(*next, expected)) {
      tell(expected, let_one_go(*next, batches));
    }
  }
  // False if it was added to a batch (`ReleaseBatch`), or if the process is ending.
  [[nodiscard]] bool let_one_go(Releasable& object, std::vector<ReleaseBatch*>& batches) noexcept {
    const os::DriverCall call;
    if (!call) {
      return false;
    }
    const auto user = object.sole_queue();
    if (user && join(batches, user, object)) {
      return false;
    }
    object.release_now();
    return true;
  }
  // Adds it to the releases on demand. It is expected, as waiting is a demand. False during one.
  [[nodiscard]] bool leave_for_demand(Releasable& object, std::uint64_t expected) noexcept {
    const std::lock_guard hold{lock_};
    if (demands_ != 0) {
      is_asking_ = is_reaper_;
      return false;
    }
    expected_ += 1 - expected;
    on_demand_bytes_.fetch_add(std::max(object.nbytes(), k_least_bytes), std::memory_order_relaxed);
    object.next_ready_ = std::exchange(on_demand_, &object);
    return true;
  }
  // Adds `object` to the batch of `user`. False if there is no memory for that.
  [[nodiscard]] bool join(std::vector<ReleaseBatch*>& batches, const Ref<Queue>& user,
                          Releasable& object) noexcept;
  void push_all(const std::vector<ReleaseBatch*>& batches) noexcept;

  // Returns the objects that were put off, once they are due, however much other work there is.
  Releasable* wait_for_work(std::unique_lock<std::mutex>& hold) noexcept {
    const auto is_due = [this] { return put_off_ != nullptr && os::Clock::now() >= due_; };
    while (ready_ == nullptr && !is_due()) {
      if (put_off_ == nullptr) {
        changed_.wait(hold);
      } else {
        const auto until = due_;  // a copy: another thread may change it meanwhile
        changed_.wait_until(hold, until);
      }
    }
    if (!is_due()) {
      return nullptr;
    }
    is_trying_again_ = true;
    pause_ = std::min(pause_ * 2, k_longest_pause);
    due_ = os::Clock::now() + pause_;
    return std::exchange(put_off_, nullptr);
  }

  static inline thread_local bool is_reaper_ = false;  // whether this is the library thread
  static constexpr std::chrono::milliseconds k_least_pause{1};
  static constexpr std::chrono::milliseconds k_longest_pause{1000};
  static constexpr std::chrono::milliseconds k_longest_ask{4};
  static constexpr std::size_t k_least_bytes = std::size_t{1} << 20;
  std::mutex lock_;  // guards all but the atomics; no driver is called under it
  std::condition_variable changed_;
  std::condition_variable ended_;
  Releasable* ready_ = nullptr;      // to be released, or to be queried for, now
  Releasable* put_off_ = nullptr;    // to be tried again at `due_`
  Releasable* on_demand_ = nullptr;  // wait for a demand
  std::atomic<std::size_t> on_demand_bytes_{0};
  int demands_ = 0;
  bool is_asking_ = false;  // a queue is being queried on demand
  bool is_at_work_ = false;
  std::chrono::milliseconds pause_{k_least_pause};
  os::Clock::time_point due_;     // valid while `put_off_` is not empty
  bool is_trying_again_ = false;  // objects put off now were put off before
  std::uint64_t expected_ = 0;
  std::uint64_t let_go_ = 0;
  bool has_thread_ = false;
  std::atomic<bool> lacks_thread_{false};
};

namespace {

DeferredRelease& process_reaper() noexcept {
  static NeverDestroyed<DeferredRelease> only;
  return *only;
}

}  // namespace

// The objects of one pass that wait for the same queue. It is queried after all of them were added.
class DeferredRelease::ReleaseBatch final : public Releasable {
 public:
  explicit ReleaseBatch(Ref<Queue> user) noexcept : user_{std::move(user)} {}

  [[nodiscard]] bool is_of(const Queue& user) const noexcept { return user_.get() == &user; }
  [[nodiscard]] bool is_released_on_demand() noexcept override {
    return !was_asked_ && user_->is_asked_on_demand();
  }
  void add(Releasable& object) noexcept {
    nbytes_ += std::max(object.nbytes(), k_least_bytes);
    object.next_ready_ = std::exchange(first_, &object);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept override { return nbytes_; }
  void release_now() noexcept override {
    if (std::exchange(was_asked_, true)) {
      let_all_go();
    } else if (!ask()) {
      was_asked_ = false;
      on_deferred();
      retry_release(*this);
    }
  }

 private:
  // Queries the queue. False if it cannot report its work now, or if there is no memory for that.
  [[nodiscard]] bool ask() noexcept try {
    std::vector<Ref<Event>> running;
    const auto asked = user_->unfinished(running);
    const bool is_lost = !asked && asked.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
    if (!asked && !is_lost) {
      return false;
    }
    if (!running.empty()) {
      tell_all(&Releasable::on_scheduled);
    }
    reclaim_after(*this, running);  // at once if none is running
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void on_deferred() noexcept override { tell_all(&Releasable::on_deferred); }
  void tell_all(void (Releasable::*function)() noexcept) noexcept {
    for (auto* each = first_; each != nullptr; each = each->next_ready_) {
      (each->*function)();
    }
  }
  void let_all_go() noexcept;

  const Ref<Queue> user_;
  Releasable* first_ = nullptr;
  std::size_t nbytes_ = 0;
  bool was_asked_ = false;
};

// Reports each release, so that a thread which waits for the first need not wait for the last.
void DeferredRelease::ReleaseBatch::let_all_go() noexcept {
  while (first_ != nullptr) {
    std::exchange(first_, first_->next_ready_)->release_idle();
    process_reaper().tell(0, true);
  }
  delete this;
}

bool DeferredRelease::join(std::vector<ReleaseBatch*>& batches, const Ref<Queue>& user,
                           Releasable& object) noexcept try {
  auto found = std::ranges::find_if(batches, [&](auto* each) { return each->is_of(*user); });
  if (found == batches.end()) {
    batches.reserve(batches.size() + 1);
    batches.push_back(new ReleaseBatch{user});
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

// Pushes an object to the `reaper` once nothing uses it any more.
class Handover final : public Continuation {
 public:
  explicit Handover(Releasable& object) : what_{object} {}
  void run(Event&) noexcept override {
    process_reaper().push(what_);
    delete this;
  }

 private:
  Releasable& what_;
};

}  // namespace

void reclaim_after(Releasable& object, const std::vector<Ref<Event>>& running) {
  auto ready = std::make_unique<Handover>(object);
  const auto ended = end_of_all(running);
  process_reaper().expect();
  ended->on_complete(*ready.release());
}

void defer_release(Releasable& object) noexcept {
  process_reaper().expect();
  process_reaper().push_or_leave(object);
}

void retry_release(Releasable& object) noexcept { process_reaper().on_deferred(object); }

void start_letting_go() noexcept { process_reaper().start_late(); }

bool release_on_demand() noexcept {
  end_lingering();
  return process_reaper().release_on_demand(1);
}

bool release_much_on_demand() noexcept {
  constexpr std::size_t k_much = std::size_t{64} << 20;
  return process_reaper().release_on_demand(k_much);
}

std::uint64_t reclaims() noexcept { return process_reaper().release_now(); }

bool sleep_for_reclaim(std::uint64_t seen, const os::Deadline& until) noexcept {
  return process_reaper().wait(seen, until);
}

}  // namespace isthmus
