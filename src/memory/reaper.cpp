#include "memory/reaper.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "os/process.hpp"

namespace isthmus {
namespace {

// An endless list of records to reclaim and the one thread that does it; never destroyed.
class reaper {
 public:
  void push(allocation& record) noexcept {
    const std::lock_guard hold{lock_};
    if (!has_thread_) {
      start();
    }
    ready_.push_back(&record);
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
      changed_.wait(hold, [this] { return !ready_.empty(); });
      std::vector<allocation*> batch;
      batch.swap(ready_);
      hold.unlock();
      for (auto* record : batch) {
        if (const os::driver_call call; call) {
          record->reclaim();
        }
      }
      hold.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<allocation*> ready_;
  bool has_thread_ = false;
};

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

void reclaim_after(allocation& record, std::vector<ref<event>> running) noexcept {
  auto* whole = new countdown{record, running.size()};
  for (auto& each : running) {
    auto* waited = each.get();
    waited->on_complete(*new step{*whole, std::move(each)});
  }
}

}  // namespace isthmus
