// SPDX-License-Identifier: Apache-2.0
#include "memory/reaper.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "backend/lingering.hpp"
#include "core/never_destroyed.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus {
// The lists of objects to be released, and the one thread that releases them. Never destroyed.
class reaper {
 public:
  class crowd;

  // Announces an object that will be pushed later. While any is expected, `wait` waits.
  void expect() noexcept {
    const std::lock_guard hold{lock_};
    ++expected_;
  }
  void push(reclaimable& what) noexcept {
    const std::lock_guard hold{lock_};
    start();
    what.next_ready_ = std::exchange(ready_, &what);
    changed_.notify_one();
  }

  // These do not count as expected, since they may never be released.
  void put_off(reclaimable& what) noexcept {
    const std::lock_guard hold{lock_};
    start();
    if (!is_trying_again_) {
      const auto soon = os::clock::now() + k_least_pause;
      pause_ = put_off_ == nullptr ? k_least_pause : pause_;
      due_ = put_off_ == nullptr ? soon : std::min(due_, soon);
    }
    what.next_ready_ = std::exchange(put_off_, &what);
    changed_.notify_one();
  }

  // Joins the releases on demand at once, not on the library thread, so the next demand finds it.
  void push_or_leave(reclaimable& what) noexcept {
    if (!what.goes_on_demand() || !leave_for_demand(what, 1)) {
      push(what);
    }
  }

  [[nodiscard]] bool let_go_on_demand(std::size_t least_bytes) noexcept {
    if (on_demand_bytes_.load(std::memory_order_relaxed) < least_bytes || on_library_thread() ||
        in_continuation() || os::is_forked_child()) {
      return false;
    }
    std::unique_lock hold{lock_};
    const demand from_here{*this, hold};
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

  [[nodiscard]] std::uint64_t let_go() noexcept {
    const std::lock_guard hold{lock_};
    return let_go_;
  }
  [[nodiscard]] bool wait(std::uint64_t seen, const os::deadline& until) noexcept {
    if (is_reaper_) {
      return false;
    }
    start_late();
    std::unique_lock hold{lock_};
    std::optional<demand> from_here;
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
  class demand {
   public:
    demand(reaper& of, std::unique_lock<std::mutex>& hold) noexcept : of_{of}, hold_{hold} {
      ++of_.demands_;
      of_.start();
      of_.on_demand_bytes_.store(0, std::memory_order_relaxed);
      auto* first = std::exchange(of_.on_demand_, nullptr);
      while (first != nullptr) {
        auto* const next = std::exchange(first, first->next_ready_);
        next->next_ready_ = std::exchange(of_.ready_, next);
      }
      of_.changed_.notify_one();
    }
    ~demand() {
      --of_.demands_;
      of_.ended_.wait_for(hold_, k_longest_ask, [this] { return !of_.is_asking_; });
    }
    demand(const demand&) = delete;
    demand& operator=(const demand&) = delete;

   private:
    reaper& of_;
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
      std::vector<crowd*> crowds;
      while (again != nullptr) {
        let_first_go(again, crowds, 0);
      }
      while (batch != nullptr) {
        let_first_go(batch, crowds, 1);
      }
      push_all(crowds);
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
  void let_first_go(reclaimable*& first, std::vector<crowd*>& crowds,
                    std::uint64_t expected) noexcept {
    auto* const next = std::exchange(first, first->next_ready_);
    if (!next->goes_on_demand() || !leave_for_demand(*next, expected)) {
      tell(expected, let_one_go(*next, crowds));
    }
  }
  // False if it was added to a batch (`crowd`), or if the process is ending.
  [[nodiscard]] bool let_one_go(reclaimable& what, std::vector<crowd*>& crowds) noexcept {
    const os::driver_call call;
    if (!call) {
      return false;
    }
    const auto user = what.only_user();
    if (user && join(crowds, user, what)) {
      return false;
    }
    what.let_go();
    return true;
  }
  // Adds it to the releases on demand. It is expected, as waiting is a demand. False during one.
  [[nodiscard]] bool leave_for_demand(reclaimable& what, std::uint64_t expected) noexcept {
    const std::lock_guard hold{lock_};
    if (demands_ != 0) {
      is_asking_ = is_reaper_;
      return false;
    }
    expected_ += 1 - expected;
    on_demand_bytes_.fetch_add(std::max(what.nbytes(), k_least_bytes), std::memory_order_relaxed);
    what.next_ready_ = std::exchange(on_demand_, &what);
    return true;
  }
  // Adds `what` to the batch of `user`. False if there is no memory for that.
  [[nodiscard]] bool join(std::vector<crowd*>& crowds, const ref<queue>& user,
                          reclaimable& what) noexcept;
  void push_all(const std::vector<crowd*>& crowds) noexcept;

  // Returns the objects that were put off, once they are due, however much other work there is.
  reclaimable* wait_for_work(std::unique_lock<std::mutex>& hold) noexcept {
    const auto is_due = [this] { return put_off_ != nullptr && os::clock::now() >= due_; };
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
    due_ = os::clock::now() + pause_;
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
  reclaimable* ready_ = nullptr;      // to be released, or to be queried for, now
  reclaimable* put_off_ = nullptr;    // to be tried again at `due_`
  reclaimable* on_demand_ = nullptr;  // wait for a demand
  std::atomic<std::size_t> on_demand_bytes_{0};
  int demands_ = 0;
  bool is_asking_ = false;  // a queue is being queried on demand
  bool is_at_work_ = false;
  std::chrono::milliseconds pause_{k_least_pause};
  os::clock::time_point due_;     // valid while `put_off_` is not empty
  bool is_trying_again_ = false;  // objects put off now were put off before
  std::uint64_t expected_ = 0;
  std::uint64_t let_go_ = 0;
  bool has_thread_ = false;
  std::atomic<bool> lacks_thread_{false};
};

namespace {

reaper& process_reaper() noexcept {
  static never_destroyed<reaper> only;
  return *only;
}

}  // namespace

// The objects of one pass that wait for the same queue. It is queried after all of them were added.
class reaper::crowd final : public reclaimable {
 public:
  explicit crowd(ref<queue> user) noexcept : user_{std::move(user)} {}

  [[nodiscard]] bool is_of(const queue& user) const noexcept { return user_.get() == &user; }
  [[nodiscard]] bool goes_on_demand() noexcept override {
    return !was_asked_ && user_->is_asked_on_demand();
  }
  void add(reclaimable& what) noexcept {
    nbytes_ += std::max(what.nbytes(), k_least_bytes);
    what.next_ready_ = std::exchange(first_, &what);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept override { return nbytes_; }
  void let_go() noexcept override {
    if (std::exchange(was_asked_, true)) {
      let_all_go();
    } else if (!ask()) {
      was_asked_ = false;
      put_off();
      let_go_again(*this);
    }
  }

 private:
  // Queries the queue. False if it cannot report its work now, or if there is no memory for that.
  [[nodiscard]] bool ask() noexcept try {
    std::vector<ref<event>> running;
    const auto asked = user_->unfinished(running);
    const bool is_lost = !asked && asked.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
    if (!asked && !is_lost) {
      return false;
    }
    if (!running.empty()) {
      tell_all(&reclaimable::be_expected);
    }
    reclaim_after(*this, running);  // at once if none is running
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void put_off() noexcept override { tell_all(&reclaimable::put_off); }
  void tell_all(void (reclaimable::*what)() noexcept) noexcept {
    for (auto* each = first_; each != nullptr; each = each->next_ready_) {
      (each->*what)();
    }
  }
  void let_all_go() noexcept;

  const ref<queue> user_;
  reclaimable* first_ = nullptr;
  std::size_t nbytes_ = 0;
  bool was_asked_ = false;
};

// Reports each release, so that a thread which waits for the first need not wait for the last.
void reaper::crowd::let_all_go() noexcept {
  while (first_ != nullptr) {
    std::exchange(first_, first_->next_ready_)->let_go_unused();
    process_reaper().tell(0, true);
  }
  delete this;
}

bool reaper::join(std::vector<crowd*>& crowds, const ref<queue>& user, reclaimable& what) noexcept
    try {
  auto found = std::ranges::find_if(crowds, [&](const crowd* each) { return each->is_of(*user); });
  if (found == crowds.end()) {
    crowds.reserve(crowds.size() + 1);
    crowds.push_back(new crowd{user});
    expect();
    found = crowds.end() - 1;
  }
  (*found)->add(what);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void reaper::push_all(const std::vector<crowd*>& crowds) noexcept {
  for (auto* each : crowds) {
    push(*each);
  }
}

namespace {

// Pushes an object to the `reaper` once nothing uses it any more.
class handover final : public continuation {
 public:
  explicit handover(reclaimable& what) : what_{what} {}
  void run(event&) noexcept override {
    process_reaper().push(what_);
    delete this;
  }

 private:
  reclaimable& what_;
};

}  // namespace

void reclaim_after(reclaimable& what, const std::vector<ref<event>>& running) {
  auto ready = std::make_unique<handover>(what);
  const auto ended = end_of_all(running);
  process_reaper().expect();
  ended->on_complete(*ready.release());
}

void retire_later(reclaimable& what) noexcept {
  process_reaper().expect();
  process_reaper().push_or_leave(what);
}

void let_go_again(reclaimable& what) noexcept { process_reaper().put_off(what); }

void start_letting_go() noexcept { process_reaper().start_late(); }

bool let_go_on_demand() noexcept {
  end_lingering();
  return process_reaper().let_go_on_demand(1);
}

bool let_much_go_on_demand() noexcept {
  constexpr std::size_t k_much = std::size_t{64} << 20;
  return process_reaper().let_go_on_demand(k_much);
}

std::uint64_t reclaims() noexcept { return process_reaper().let_go(); }

bool sleep_for_reclaim(std::uint64_t seen, const os::deadline& until) noexcept {
  return process_reaper().wait(seen, until);
}

}  // namespace isthmus
