// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that run on the host in queue order, and their execution for drivers that cannot run
// them. Used by queues.

#include <memory>

#include "backend/context.hpp"
#include "backend/event.hpp"
#include "backend/function_waits.hpp"

namespace isthmus {

// A function that runs in queue order on a library thread. It may block and call anything. Waits
// for later operations on its queue fail with DEADLOCK. `context` is the queue's context, whose
// `function_address` returns the address at which the function may access device memory.
class HostFunction {
 public:
  HostFunction() = default;
  HostFunction(const HostFunction&) = delete;
  HostFunction& operator=(const HostFunction&) = delete;
  virtual ~HostFunction() = default;

  // Called once, before the submission. Throws std::bad_alloc.
  void begin_pending(QueuePosition position) { pending_.begin(position); }
  Error call(Context& context) noexcept {
    const RunningFunction running{pending_};
    return run(context);
  }

 protected:
  virtual Error run(Context& context) noexcept = 0;

 private:
  PendingFunction pending_;
};

// Runs a function on a library thread once all earlier work on the queue has completed, then opens
// the gate that delays later work.
class FunctionContinuation final : public Continuation {
 public:
  FunctionContinuation(std::unique_ptr<HostFunction> function, Context& context,
                       Ref<LibraryEvent> end_event, Ref<LibraryEvent> gate);
  // Called instead of attaching this object.
  [[nodiscard]] std::unique_ptr<HostFunction> release_function() noexcept;

  void run(Event& start_event) noexcept override;

 private:
  void finish(Error outcome) noexcept;

  std::unique_ptr<HostFunction> function_;
  Ref<Context> context_;
  Ref<LibraryEvent> end_event_;
  Ref<LibraryEvent> gate_;
  bool start_failed_ = false;
  Error start_error_;
};

}  // namespace isthmus
