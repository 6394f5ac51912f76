#include "backend/library_threads.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/threads.hpp"

namespace isthmus {
namespace {

struct function_state {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  std::size_t idle_threads = 0;
  std::size_t running = 0;
  bool stopped = false;
};

// Outlives every thread: never destroyed.
function_state& state() noexcept {
  static auto* const only = new function_state;
  return *only;
}

void serve() {
  auto& shared = state();
  std::unique_lock hold{shared.lock};
  for (;;) {
    ++shared.idle_threads;
    shared.changed.wait(hold, [&] { return !shared.waiting.empty(); });
    --shared.idle_threads;
    auto work = std::move(shared.waiting.front());
    shared.waiting.pop_front();
    hold.unlock();
    work();
    work = nullptr;
    hold.lock();
  }
}

}  // namespace

error functions_are_stopped() {
  return fail(ISTHMUS_ERROR_CALLBACK,
              "the function did not run: the process, or the interpreter it belongs to, is ending");
}

void run_on_library_thread(std::function<void()> work,
                           const std::function<void(error)>& refuse) noexcept {
  auto& shared = state();
  try {
    const std::lock_guard hold{shared.lock};
    if (shared.idle_threads <= shared.waiting.size()) {
      start_thread(serve).detach();
    }
    shared.waiting.push_back(std::move(work));
    shared.changed.notify_all();  // stop_functions waits here too: one waiter may be the wrong one
    return;
  } catch (const std::exception& cause) {
    refuse(fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no thread for a function: {}", cause.what()));
  }
}

bool function_may_begin() noexcept {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  if (shared.stopped) {
    return false;
  }
  ++shared.running;
  return true;
}

void function_ended() noexcept {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  --shared.running;
  shared.changed.notify_all();
}

void stop_functions() noexcept {
  auto& shared = state();
  std::unique_lock hold{shared.lock};
  shared.stopped = true;
  shared.changed.wait(hold, [&] { return shared.running == 0; });
}

}  // namespace isthmus
