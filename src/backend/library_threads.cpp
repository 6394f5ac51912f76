// SPDX-License-Identifier: Apache-2.0
#include "backend/library_threads.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "backend/function_waits.hpp"
#include "core/chain.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "core/threads.hpp"

namespace isthmus {

struct WorkItem {
  std::function<void()> work;
  WorkItem* next = nullptr;
};

namespace {

struct FunctionState {
  Mutex lock;
  ConditionVariable changed;
  // Unlike the standard containers, allocates nothing on construction: memory may be exhausted at
  // the first use.
  Chain<WorkItem> waiting ISTHMUS_GUARDED_BY(lock);
  // Queued work, and reserved work not started yet.
  std::size_t reserved ISTHMUS_GUARDED_BY(lock) = 0;
  std::size_t threads ISTHMUS_GUARDED_BY(lock) = 0;
  std::size_t idle_threads ISTHMUS_GUARDED_BY(lock) = 0;
  std::size_t running ISTHMUS_GUARDED_BY(lock) = 0;
  bool stopped ISTHMUS_GUARDED_BY(lock) = false;
  IdleWork when_idle ISTHMUS_GUARDED_BY(lock) = nullptr;
  // The time at which `when_idle` is due.
  os::Clock::time_point due ISTHMUS_GUARDED_BY(lock) = os::Clock::time_point::max();
};

static_assert(std::is_nothrow_default_constructible_v<FunctionState>);

// Never destroyed, since it must outlive every thread.
FunctionState& state() noexcept {
  static NeverDestroyed<FunctionState> instance;
  return *instance;
}

// Waits until there is work. Returns false if idle work is due instead. Idle work may wait for a
// device, so it runs only while there are more idle threads than reserved work items.
bool wait_for_work(FunctionState& shared) ISTHMUS_REQUIRES(shared.lock) {
  while (shared.waiting.empty()) {
    if (shared.due == os::Clock::time_point::max() || shared.idle_threads <= shared.reserved) {
      shared.changed.wait(shared.lock);
    } else if (shared.due <= os::Clock::now()) {
      return false;
    } else {
      shared.changed.wait_until(shared.lock, os::Clock::time_point{shared.due});
    }
  }
  return true;
}

void run_idle_work(FunctionState& shared) ISTHMUS_REQUIRES(shared.lock) {
  shared.due = os::Clock::time_point::max();
  const auto idle_work = shared.when_idle;
  shared.lock.unlock();
  const auto next = idle_work();
  shared.lock.lock();
  shared.due = std::min(shared.due, next.value_or(os::Clock::time_point::max()));
}

void serve_functions() {
  auto& shared = state();
  UniqueLock hold{shared.lock};
  for (;;) {
    ++shared.idle_threads;
    const bool has_work = wait_for_work(shared);
    --shared.idle_threads;
    if (!has_work) {
      run_idle_work(shared);
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

// Throws std::system_error if no thread can be started.
void add_thread(FunctionState& shared) ISTHMUS_REQUIRES(shared.lock) {
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
    : item_{std::make_unique<WorkItem>(WorkItem{std::move(work)})} {
  auto& shared = state();
  const LockGuard hold{shared.lock};
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
    const LockGuard hold{shared.lock};
    --shared.reserved;
    shared.changed.notify_all();
  }
}

void ReservedWork::start() noexcept {
  ISTHMUS_EXPECTS(item_);
  auto& shared = state();
  const LockGuard hold{shared.lock};
  shared.waiting.push_back(std::move(item_));
  shared.changed.notify_all();  // not notify_one, which might wake only `stop_functions`
}

void run_when_idle(IdleWork work, os::Clock::time_point when) noexcept {
  auto& shared = state();
  const LockGuard hold{shared.lock};
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
  const LockGuard hold{shared.lock};
  if (shared.stopped) {
    return false;
  }
  ++shared.running;
  return true;
}

void end_function() noexcept {
  auto& shared = state();
  const LockGuard hold{shared.lock};
  --shared.running;
  shared.changed.notify_all();
}

void stop_functions() noexcept {
  auto& shared = state();
  const std::size_t own = is_in_function() ? 1 : 0;
  const LockGuard hold{shared.lock};
  shared.stopped = true;
  while (shared.running > own) {
    shared.changed.wait(shared.lock);
  }
}

}  // namespace isthmus
