#include "memory/reaper.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "core/threads.hpp"
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
      start_thread([this] { serve(); }).detach();
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
          record->let_go();
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

// Hands a record to the reaper once nothing uses it any more.
class handover final : public continuation {
 public:
  explicit handover(allocation& record) : record_{record} {}
  void run(event&) noexcept override {
    process_reaper().push(record_);
    delete this;
  }

 private:
  allocation& record_;
};

}  // namespace

void reclaim_after(allocation& record, const std::vector<ref<event>>& running) {
  auto ready = std::make_unique<handover>(record);
  const auto ended = end_of_all(running);
  ended->on_complete(*ready.release());
}

void retire_later(allocation& record) noexcept { process_reaper().push(record); }

}  // namespace isthmus
