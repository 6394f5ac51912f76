// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submission of operations to the driver: the definitions of Queue's templates, for the files that
// use them.

#include "backend/cuda/current.hpp"
#include "backend/cuda/queue.hpp"

namespace isthmus::cuda {

[[nodiscard]] Result<Ref<Operation>> make_operation(const Device& device, bool has_timing);

// Pre: all of `after` are ready. DEPENDENCY if one of them failed.
template <class Command>
Error Queue::submit_now(Operation& event, const char* call, WaitList after,
                        const Command& command) const {
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const ContextGuard guard{calls(), device_.primary_or_null()};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  if (auto error = check_not_capturing()) {
    return error;
  }
  if (const auto outcome = enqueue_waits(after); outcome != cu::k_success) {
    return call_failed("cuStreamWaitEvent", outcome);
  }
  auto outcome = command();
  if (outcome == cu::k_success) {
    outcome = calls().record(event.handle(), stream());
    call = outcome == cu::k_success ? call : "cuEventRecord";
  }
  if (outcome != cu::k_success) {
    calls().finish(stream());  // a later command was refused: wait for the earlier ones
    return call_failed(call, outcome);
  }
  event.mark_enqueued();
  return {};
}

template <class Command>
Result<Ref<Event>> Queue::submit(const char* call, WaitList after, Command&& command,
                                 bool has_timing) {
  // Creates the event first: nothing may fail once the driver has received the operation.
  auto event = make_operation(device_, has_timing);
  ISTHMUS_TRY(event);
  return enqueue_or_defer(
      *event, after,
      [this, operation = *event, call, submit_command = std::forward<Command>(command)](
          WaitList ready) { return submit_now(*operation, call, ready, submit_command); });
}

}  // namespace isthmus::cuda
