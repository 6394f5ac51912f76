#pragma once
// The worker of a host queue: a first-in first-out list of tasks and the thread that runs them.
//
// The thread starts with the first task that cannot run at once on its submitter's thread, and ends
// when the queue has gone and the list is empty. Tasks of a queue that has gone still run.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/context.hpp"
#include "backend/event.hpp"

namespace isthmus::host {

// A task is its own event: one allocation for each operation.
class task final : public event {
 public:
  // `effect` does the work and gives its outcome.
  task(std::function<error()> effect, wait_list after);

  // Waits for what comes before, does the work and completes.
  void execute() noexcept;
  // Ready to run without waiting for anything.
  [[nodiscard]] bool ready() const noexcept { return after_.empty(); }
  [[nodiscard]] result<event_times> times() override;
  [[nodiscard]] const void* clock() const noexcept override;

 private:
  std::function<error()> effect_;
  std::vector<ref<event>> after_;
  event_times times_;
};

class worker : public std::enable_shared_from_this<worker> {
 public:
  // Runs `next` here and now if it may (`small`, ready, nothing before it), else hands it to the
  // thread.
  [[nodiscard]] result<void> submit(const ref<task>& next, bool small);
  // No more tasks come.
  void retire() noexcept;

 private:
  [[nodiscard]] bool claim_idle() noexcept;
  void leave_idle() noexcept;
  [[nodiscard]] result<void> enqueue(const ref<task>& next);
  void serve() noexcept;

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<ref<task>> waiting_;
  bool busy_ = false;  // a task is running, on the thread or on a submitter's
  bool has_thread_ = false;
  bool retired_ = false;
};

}  // namespace isthmus::host
