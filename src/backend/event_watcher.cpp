#include "backend/event_watcher.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

#include "core/never_destroyed.hpp"
#include "core/threads.hpp"

namespace isthmus {
namespace {

constexpr std::chrono::microseconds k_shortest_sleep{20};
constexpr std::chrono::microseconds k_longest_sleep{1000};

struct watched_events {
  std::mutex lock;
  std::condition_variable changed;
  std::vector<ref<event>> given;
  bool started = false;
};

// Outlives every thread: never destroyed.
watched_events& shared() noexcept {
  static never_destroyed<watched_events> only;
  return *only;
}

// Asked outside the lock: an event that completes may run anything, this thread's
// `watch_till_complete` too.
bool look_at(std::vector<ref<event>>& watched) noexcept {
  const auto ended = std::remove_if(watched.begin(), watched.end(),
                                    [](const ref<event>& each) { return !each->pending(); });
  const bool any = ended != watched.end();
  watched.erase(ended, watched.end());
  return any;
}

// Without memory for it they stay where they are, and are taken later.
void take(std::vector<ref<event>>& given, std::vector<ref<event>>& watched) noexcept try {
  watched.reserve(watched.size() + given.size());
  std::move(given.begin(), given.end(), std::back_inserter(watched));
  given.clear();
} catch (const std::bad_alloc&) {
}

void serve() {
  auto& from = shared();
  std::vector<ref<event>> watched;
  auto sleep = k_shortest_sleep;
  const auto something_new = [&] { return !from.given.empty(); };
  for (;;) {
    {
      std::unique_lock hold{from.lock};
      if (watched.empty()) {
        from.changed.wait(hold, something_new);
      } else {
        from.changed.wait_for(hold, sleep, something_new);
      }
      sleep = something_new() ? k_shortest_sleep : sleep;
      take(from.given, watched);
    }
    sleep = look_at(watched) ? k_shortest_sleep : std::min(sleep + sleep / 8, k_longest_sleep);
  }
}

}  // namespace

bool watch_till_complete(event& pending) noexcept try {
  auto& to = shared();
  const std::lock_guard hold{to.lock};
  if (!to.started) {
    start_thread(serve).detach();
    to.started = true;
  }
  to.given.emplace_back(&pending);
  to.changed.notify_one();
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace isthmus
