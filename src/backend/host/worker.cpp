// SPDX-License-Identifier: Apache-2.0
#include "backend/host/worker.hpp"

#include "core/lock_guard.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::host {
namespace {

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(os::Clock::now().time_since_epoch())
          .count());
}

}  // namespace

Task::Task(std::function<Error()> effect, WaitList after)
    : effect_{std::move(effect)}, after_{after.begin(), after.end()} {
  times_.submitted_ns = now_ns();
}

void Task::execute() noexcept {
  Error outcome = wait_for_all(after_).take_error();
  if (outcome) {
    wait_until_ended(after_);  // completion of this task implies theirs
  }
  times_.started_ns = now_ns();
  if (!outcome) {
    outcome = effect_();
  }
  times_.ended_ns = now_ns();
  {
    const os::DriverCall calls;  // releasing another driver's events may call that driver
    after_.clear();
    effect_ = nullptr;
  }
  complete(std::move(outcome));
}

// All queues of the host share one clock.
const void* Task::clock() const noexcept {
  static const char only = 0;
  return &only;
}

bool Worker::try_claim() noexcept {
  const LockGuard hold{lock_};
  if (busy_ || !waiting_.empty()) {
    return false;
  }
  busy_ = true;
  return true;
}

void Worker::release_claim() noexcept {
  const LockGuard hold{lock_};
  busy_ = false;
  if (!waiting_.empty()) {
    changed_.notify_one();
  }
}

Result<void> Worker::submit(const Ref<Task>& next, bool small) {
  if (small && next->ready() && try_claim()) {
    next->execute();
    release_claim();
    return {};
  }
  return enqueue(next);
}

Result<void> Worker::enqueue(const Ref<Task>& next) {
  try {
    const LockGuard hold{lock_};
    if (!has_thread_) {
      start_thread([self = shared_from_this()] { self->serve(); }).detach();
      has_thread_ = true;
    }
    waiting_.push_back(next);
    changed_.notify_one();
    return {};
  } catch (const std::exception& cause) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "cannot start a thread for a queue of the host: {}",
                cause.what());
  }
}

void Worker::retire() noexcept {
  const LockGuard hold{lock_};
  retired_ = true;
  changed_.notify_one();
}

void Worker::serve() noexcept {
  UniqueLock hold{lock_};
  for (;;) {
    while (busy_ || (!retired_ && waiting_.empty())) {
      changed_.wait(lock_);
    }
    if (waiting_.empty()) {
      return;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    hold.unlock();
    next->execute();
    hold.lock();
    busy_ = false;
  }
}

}  // namespace isthmus::host
