// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submission of operations to the driver: the definitions of queue's templates, for the files that
// use them.

#include "backend/cuda/current.hpp"
#include "backend/cuda/queue.hpp"

namespace isthmus::cuda {

[[nodiscard]] Result<Ref<Operation>> make_operation(const Device& device, bool knows_time);

// Pre: all of `after` are ready. DEPENDENCY if one of them failed.
template <class Command>
Error Queue::put(Operation& made, const char* call, WaitList after, const Command& command) const {
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const MadeCurrent here{calls(), device_.known_primary()};
  if (here.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", here.outcome());
  }
  if (auto refused = refuse_capture()) {
    return refused;
  }
  if (const auto outcome = wait_for(after); outcome != cu::k_success) {
    return call_failed("cuStreamWaitEvent", outcome);
  }
  auto outcome = command();
  if (outcome == cu::k_success) {
    outcome = calls().record(made.handle(), stream());
    call = outcome == cu::k_success ? call : "cuEventRecord";
  }
  if (outcome != cu::k_success) {
    calls().finish(stream());  // a later one of several commands was refused: leave none in flight
    return call_failed(call, outcome);
  }
  made.mark_put();
  return {};
}

template <class Command>
Result<Ref<Event>> Queue::submit(const char* call, WaitList after, Command&& command,
                                 bool knows_time) {
  // Created first: nothing may fail once the driver has the operation.
  auto made = make_operation(device_, knows_time);
  ISTHMUS_TRY(made);
  return put_or_hold(*made, after,
                     [this, to = *made, call, what = std::forward<Command>(command)](
                         WaitList ready) { return put(*to, call, ready, what); });
}

}  // namespace isthmus::cuda
