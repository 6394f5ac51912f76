#include "memory/reaper.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "os/process.hpp"

namespace isthmus {
// An endless list of records to reclaim and the one thread that does it; never destroyed.
class reaper {
 public:
  void push(allocation& record) noexcept {
    const std::lock_guard hold{lock_};
    if (!has_thread_) {
      start();
    }
    record.next_ready_ = std::exchange(ready_, &record);
    changed_.notify_one();
  }

 private:
  // Without a thread the records wait in the list, which is no loss but of memory, for the next
  // one.
  void start() noexcept {
    try {
      std::thread{[this] { serve(); }}.detach();
      has_thread_ = true;
    } catch (...) {
      has_thread_ = false;
    }
  }

  void serve() noexcept {
    std::unique_lock hold{lock_};
    for (;;) {
      changed_.wait(hold, [this] { return ready_ != nullptr; });
      auto* batch = std::exchange(ready_, nullptr);
      hold.unlock();
      while (batch != nullptr) {
        auto* record = std::exchange(batch, batch->next_ready_);
        if (const os::driver_call call; call) {
          record->reclaim();
        }
      }
      hold.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  allocation* ready_ = nullptr;
  bool has_thread_ = false;
};

namespace {

reaper& process_reaper() noexcept {
  static auto* const only = new reaper;
  return *only;
}

// Counts the completions that a record waits for.
class countdown {
 public:
  countdown(allocation& record, std::size_t events) : record_{record}, left_{events} {}

  void one_ended() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      process_reaper().push(record_);
      delete this;
    }
  }

 private:
  allocation& record_;
  std::atomic<std::size_t> left_;
};

// Keeps its event alive till it has completed: nobody else may be left to.
class step final : public continuation {
 public:
  step(countdown& whole, ref<event> waited) : whole_{whole}, waited_{std::move(waited)} {}
  void run(event&) noexcept override {
    whole_.one_ended();
    delete this;
  }

 private:
  countdown& whole_;
  ref<event> waited_;
};

}  // namespace

// All that can fail comes before the first of them is armed.
void reclaim_after(allocation& record, std::vector<ref<event>> running) {
  auto whole = std::make_unique<countdown>(record, running.size());
  std::vector<std::unique_ptr<step>> steps;
  steps.reserve(running.size());
  for (const auto& each : running) {
    steps.push_back(std::make_unique<step>(*whole, each));
  }
  static_cast<void>(whole.release());
  for (std::size_t index = 0; index < running.size(); ++index) {
    running[index]->on_complete(*steps[index].release());
  }
}

}  // namespace isthmus
