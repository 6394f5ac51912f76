// SPDX-License-Identifier: Apache-2.0
#pragma once
// The worker of a host queue: a first-in first-out list of tasks and the thread that runs them.
//
// The thread starts with the first task that cannot run at once on the submitting thread, and ends
// when the queue is destroyed and the list is empty. Tasks of a destroyed queue still run.
// Thread-safe.

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "backend/context.hpp"
#include "backend/event.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::host {

// A task is its own event: one allocation per operation. `execute` is called once, by one thread.
class Task final : public Event {
 public:
  // `effect` performs the work and returns its outcome.
  Task(std::function<Error()> effect, WaitList after);

  // Waits for `after`, performs the work and completes the event.
  void execute() noexcept;
  // Whether the task can run without waiting.
  [[nodiscard]] bool ready() const noexcept { return after_.empty(); }
  [[nodiscard]] const void* clock() const noexcept override;

 protected:
  [[nodiscard]] Result<EventTimes> do_times() override { return times_; }

 private:
  std::function<Error()> effect_;
  std::vector<Ref<Event>> after_;
  EventTimes times_;
};

class Worker : public std::enable_shared_from_this<Worker> {
 public:
  // Runs `next` on the calling thread if it is `small`, is ready and no task precedes it. Otherwise
  // passes it to the worker's thread.
  [[nodiscard]] Result<void> submit(const Ref<Task>& next, bool small);
  // Called after the last task was submitted.
  void retire() noexcept;

 private:
  [[nodiscard]] bool try_claim() noexcept;
  void release_claim() noexcept;
  [[nodiscard]] Result<void> enqueue(const Ref<Task>& next);
  void serve() noexcept;

  Mutex lock_;
  ConditionVariable changed_;
  std::deque<Ref<Task>> waiting_ ISTHMUS_GUARDED_BY(lock_);
  // A task is running, on the thread or on a submitting thread.
  bool busy_ ISTHMUS_GUARDED_BY(lock_) = false;
  bool has_thread_ ISTHMUS_GUARDED_BY(lock_) = false;
  bool retired_ ISTHMUS_GUARDED_BY(lock_) = false;
};

}  // namespace isthmus::host
