// SPDX-License-Identifier: Apache-2.0
#pragma once
// Streams and events of the stand-in: a thread for each stream, so that missing waits show.
//
// As with the driver, work submitted to the legacy default stream comes after all work submitted
// before to the blocking streams, including those of threads that have ended. Work submitted to the
// blocking streams later comes after it.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_memory.hpp"

namespace stand_in {

// One recording of an event.
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

enum class manner : std::uint8_t { legacy, blocking, apart };

// Runs its work in order. Its thread ends after the work submitted before the destruction.
class stream {
 public:
  stream(manner how, int device)
      : how_{how}, device_{device}, all_{of_device(device)}, state_{std::make_shared<state>()} {
    std::thread{[state = state_] { serve(*state); }}.detach();
    const std::lock_guard hold{all_.order};
    if (how == manner::blocking) {
      all_.blocking.push_back(this);
    } else if (how == manner::legacy) {
      all_.legacy = this;
    }
  }
  ~stream() {
    if (how_ == manner::blocking) {
      const std::lock_guard hold{all_.order};
      std::erase(all_.blocking, this);
      all_.ended.push_back(end());
    }
    const std::lock_guard hold{state_->lock};
    state_->closed = true;
    state_->changed.notify_all();
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  [[nodiscard]] int device() const { return device_; }

  std::atomic<bool> is_captured{false};  // into a graph

  void push(std::function<void()> work) {
    if (how_ == manner::apart) {
      put(std::move(work));
      return;
    }
    const std::lock_guard hold{all_.order};
    order_after_implicit_streams();
    put(std::move(work));
  }
  // Whether work on the device's legacy default stream would invalidate a capture.
  [[nodiscard]] static bool any_is_captured(int device) {
    auto& all = of_device(device);
    const std::lock_guard hold{all.order};
    return std::any_of(all.blocking.begin(), all.blocking.end(),
                       [](const stream* each) { return each->is_captured.load(); });
  }
  [[nodiscard]] std::shared_ptr<mark> record() {
    auto made = std::make_shared<mark>();
    push([made] { made->set(); });
    return made;
  }
  // Waits for all streams, destroyed ones too.
  static void wait_for_all() {
    for (auto left = pending_count().load(); left != 0; left = pending_count().load()) {
      pending_count().wait(left);
    }
  }

 private:
  struct state {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> waiting;
    bool closed = false;
    bool works = false;
  };
  struct registry {
    std::mutex order;  // of submissions to all streams but `apart` ones
    stream* legacy = nullptr;
    std::vector<stream*> blocking;
    std::vector<std::shared_ptr<mark>> ended;  // destroyed blocking streams
  };

  // Never destroyed: threads outlive `main`.
  static registry& of_device(int device) {
    static auto* const all = new std::array<registry, memory::k_devices>;
    return all->at(static_cast<std::size_t>(device));
  }
  void put(std::function<void()> work) {
    const std::lock_guard hold{state_->lock};
    state_->waiting.push_back(std::move(work));
    ++pending_count();
    state_->changed.notify_all();
  }
  [[nodiscard]] std::shared_ptr<mark> end() {
    auto made = std::make_shared<mark>();
    put([made] { made->set(); });
    return made;
  }
  [[nodiscard]] bool is_idle() {
    const std::lock_guard hold{state_->lock};
    return state_->waiting.empty() && !state_->works;
  }
  void wait_for(stream& other) {
    if (!other.is_idle()) {
      put([last = other.end()] { last->wait(); });
    }
  }
  // Pre: `order` is held.
  void order_after_implicit_streams() {
    if (how_ == manner::blocking && all_.legacy != nullptr) {
      wait_for(*all_.legacy);
    } else if (how_ == manner::legacy) {
      for (auto* each : all_.blocking) {
        wait_for(*each);
      }
      for (auto& last : std::exchange(all_.ended, {})) {
        put([last] { last->wait(); });
      }
    }
  }

  static std::atomic<std::size_t>& pending_count() {
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
      of.works = true;
      hold.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds{20});  // never done at once
      work();
      work = nullptr;
      --pending_count();
      pending_count().notify_all();
      hold.lock();
      of.works = false;
    }
  }

  const manner how_;
  const int device_;
  registry& all_;
  std::shared_ptr<state> state_;
};

struct event {
  int device = 0;
  bool knows_time = false;
  std::shared_ptr<mark> last;  // null: never recorded, which counts as complete
};

}  // namespace stand_in
