#include "memory/reaper.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "core/never_destroyed.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus {
// A list of what is to be let go and the one thread that does it; never destroyed.
class reaper {
 public:
  // Each of these is pushed some time, and then let go.
  void expect() noexcept {
    const std::lock_guard hold{lock_};
    ++expected_;
  }
  void push(reclaimable& what) noexcept {
    const std::lock_guard hold{lock_};
    if (!has_thread_) {
      start();
    }
    what.next_ready_ = std::exchange(ready_, &what);
    changed_.notify_one();
  }

  [[nodiscard]] std::uint64_t let_go() noexcept {
    const std::lock_guard hold{lock_};
    return let_go_;
  }
  [[nodiscard]] bool wait(std::uint64_t seen, const os::deadline& until) noexcept {
    std::unique_lock hold{lock_};
    const auto more = [&] { return let_go_ != seen; };
    if (more() || expected_ == 0) {
      return more();
    }
    if (until) {
      return ended_.wait_until(hold, *until, more);
    }
    ended_.wait(hold, more);
    return true;
  }

 private:
  // Without a thread all waits in the list, which is no loss but of memory, for the next try.
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
        auto* next = std::exchange(batch, batch->next_ready_);
        if (const os::driver_call call; call) {
          next->let_go();
        }
        const std::lock_guard told{lock_};
        --expected_;
        ++let_go_;
        ended_.notify_all();
      }
      hold.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  reclaimable* ready_ = nullptr;
  std::uint64_t expected_ = 0;
  std::uint64_t let_go_ = 0;
  bool has_thread_ = false;
};

namespace {

reaper& process_reaper() noexcept {
  static never_destroyed<reaper> only;
  return *only;
}

// Hands something to the reaper once nothing uses it any more.
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
  process_reaper().push(what);
}

std::uint64_t reclaims() noexcept { return process_reaper().let_go(); }

bool wait_for_reclaim(std::uint64_t seen, const os::deadline& until) noexcept {
  return process_reaper().wait(seen, until);
}

}  // namespace isthmus
