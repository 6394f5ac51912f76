// SPDX-License-Identifier: Apache-2.0
#include "backend/library_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/chain.hpp"
#include "core/never_destroyed.hpp"
#include "core/threads.hpp"

namespace isthmus {

struct WorkItem {
  std::function<void()> work;
  WorkItem* next = nullptr;
};

namespace {

struct FunctionState {
  std::mutex lock;
  std::condition_variable changed;
  // Unlike the standard containers, allocates nothing on construction: memory may be exhausted at
  // the first use.
  Chain<WorkItem> waiting;
  std::size_t reserved = 0;  // queued work, and reserved work not started yet
  std::size_t threads = 0;
  std::size_t idle_threads = 0;
  std::size_t running = 0;
  bool stopped = false;
  IdleWork when_idle = nullptr;
  os::Clock::time_point due = os::Clock::time_point::max();  // the time at which `when_idle` is due
};

static_assert(std::is_nothrow_default_constructible_v<FunctionState>);

// Never destroyed, since it must outlive every thread.
FunctionState& state() noexcept {
  static NeverDestroyed<FunctionState> instance;
  return *instance;
}

// Waits until there is work. Returns false if idle work is due instead. Idle work may wait for a
// device, so it runs only while there are more idle threads than reserved work items. Pre and post:
// the lock is held.
bool wait_for_work(FunctionState& shared, std::unique_lock<std::mutex>& hold) {
  while (shared.waiting.empty()) {
    if (shared.due == os::Clock::time_point::max() || shared.idle_threads <= shared.reserved) {
      shared.changed.wait(hold);
    } else if (shared.due <= os::Clock::now()) {
      return false;
    } else {
      shared.changed.wait_until(hold, os::Clock::time_point{shared.due});
    }
  }
  return true;
}

void run_idle_work(FunctionState& shared, std::unique_lock<std::mutex>& hold) {
  shared.due = os::Clock::time_point::max();
  const auto idle_work = shared.when_idle;
  hold.unlock();
  const auto next = idle_work();
  hold.lock();
  shared.due = std::min(shared.due, next.value_or(os::Clock::time_point::max()));
}

void serve_functions() {
  auto& shared = state();
  std::unique_lock hold{shared.lock};
  for (;;) {
    ++shared.idle_threads;
    const bool has_work = wait_for_work(shared, hold);
    --shared.idle_threads;
    if (!has_work) {
      run_idle_work(shared, hold);
      continue;
    }
    auto next = shared.waiting.pop_front();
    --shared.reserved;
    hold.unlock();
    next->work();
    next = nullptr;
    hold.lock();
  }
}

// Pre: the lock is held. Throws std::system_error if no thread can be started.
void add_thread(FunctionState& shared) {
  start_thread(serve_functions).detach();
  ++shared.threads;
}

}  // namespace

Error functions_stopped_error() {
  return fail(ISTHMUS_ERROR_CALLBACK,
              "the function did not run: the process or its interpreter is ending");
}

void run_on_library_thread(std::function<void()> work,
                           const std::function<void(Error)>& on_failure) noexcept {
  try {
    auto reserved_work = ReservedWork::make(std::move(work));
    if (reserved_work) {
      reserved_work->start();
    } else {
      on_failure(reserved_work.take_error());
    }
  } catch (const std::bad_alloc&) {
    on_failure(Error::no_memory());
  }
}

ReservedWork::ReservedWork(std::function<void()> work)
    : item_{std::make_unique<WorkItem>(std::move(work))} {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  if (shared.idle_threads <= shared.reserved) {
    add_thread(shared);
  }
  ++shared.reserved;
}

Result<ReservedWork> ReservedWork::make(std::function<void()> work) try {
  return ReservedWork{std::move(work)};
} catch (const std::system_error& cause) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "cannot start a thread for a function: {}",
              cause.what());
}

ReservedWork::ReservedWork(ReservedWork&& other) noexcept = default;

ReservedWork::~ReservedWork() {
  if (item_) {
    auto& shared = state();
    const std::lock_guard hold{shared.lock};
    --shared.reserved;
    shared.changed.notify_all();
  }
}

void ReservedWork::start() noexcept {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  shared.waiting.push_back(std::move(item_));
  shared.changed.notify_all();  // not notify_one, which might wake only `stop_functions`
}

void run_when_idle(IdleWork work, os::Clock::time_point when) noexcept {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  shared.when_idle = work;
  if (when < shared.due) {
    shared.due = when;
    shared.changed.notify_all();
  }
  if (shared.threads == 0) {
    try {
      add_thread(shared);
    } catch (const std::exception&) {
      // The first thread that is started for other work runs the idle work.
    }
  }
}

bool try_begin_function() noexcept {
  auto& shared = state();
  const std::lock_guard hold{shared.lock};
  if (shared.stopped) {
    return false;
  }
  ++shared.running;
  return true;
}

void end_function() noexcept {
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
