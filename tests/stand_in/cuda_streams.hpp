#pragma once
// Streams and events of the stand-in: a thread for each stream, so that what is not waited for is
// not there yet.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace stand_in {

// Of one recording of an event.
class mark {
 public:
  void set() {
    const std::lock_guard hold{lock_};
    at_ = std::chrono::steady_clock::now();
    done_ = true;
    changed_.notify_all();
  }
  // Pre: it is set.
  [[nodiscard]] std::chrono::steady_clock::time_point at() {
    const std::lock_guard hold{lock_};
    return at_;
  }
  [[nodiscard]] bool is_set() {
    const std::lock_guard hold{lock_};
    return done_;
  }
  void wait() {
    std::unique_lock hold{lock_};
    changed_.wait(hold, [this] { return done_; });
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool done_ = false;
  std::chrono::steady_clock::time_point at_;
};

// Runs what it is given in order. Its thread ends with what was given before `close`.
class stream {
 public:
  stream() : state_{std::make_shared<state>()} {
    std::thread{[state = state_] { serve(*state); }}.detach();
  }
  ~stream() {
    const std::lock_guard hold{state_->lock};
    state_->closed = true;
    state_->changed.notify_all();
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  std::atomic<bool> is_captured{false};  // into a graph

  void push(std::function<void()> work) {
    const std::lock_guard hold{state_->lock};
    state_->waiting.push_back(std::move(work));
    ++in_flight();
    state_->changed.notify_all();
  }
  [[nodiscard]] std::shared_ptr<mark> record() {
    auto made = std::make_shared<mark>();
    push([made] { made->set(); });
    return made;
  }
  // Of every stream, closed ones too.
  static void wait_for_all() {
    for (auto left = in_flight().load(); left != 0; left = in_flight().load()) {
      in_flight().wait(left);
    }
  }

 private:
  struct state {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> waiting;
    bool closed = false;
  };

  static std::atomic<std::size_t>& in_flight() {
    static std::atomic<std::size_t> count{0};
    return count;
  }
  static void serve(state& of) {
    std::unique_lock hold{of.lock};
    for (;;) {
      of.changed.wait(hold, [&] { return of.closed || !of.waiting.empty(); });
      if (of.waiting.empty()) {
        return;
      }
      auto work = std::move(of.waiting.front());
      of.waiting.pop_front();
      hold.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds{20});  // a device is never done at once
      work();
      work = nullptr;
      --in_flight();
      in_flight().notify_all();
      hold.lock();
    }
  }

  std::shared_ptr<state> state_;
};

struct event {
  bool knows_time = false;
  std::shared_ptr<mark> last;  // none: never recorded, which counts as done
};

}  // namespace stand_in
