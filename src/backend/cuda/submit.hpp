#pragma once
// How operations are put to the driver: the body of queue's templates, for those that use them.

#include "backend/cuda/current.hpp"
#include "backend/cuda/queue.hpp"

namespace isthmus::cuda {

[[nodiscard]] result<ref<operation>> make_operation(const device& where, bool knows_time);

// Pre: all of `after` is ready. DEPENDENCY if one of it failed.
template <class Command>
error queue::put(operation& made, const char* call, wait_list after, const Command& command) const {
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const made_current here{calls(), device_.known_primary()};
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
    calls().finish(stream());  // of several commands a later one was refused: leave none in flight
    return call_failed(call, outcome);
  }
  made.mark_put();
  return {};
}

template <class Command>
result<ref<event>> queue::submit(const char* call, wait_list after, Command&& command,
                                 bool knows_time) {
  // Made first: once the driver has the operation nothing may fail.
  auto made = make_operation(device_, knows_time);
  ISTHMUS_TRY(made);
  return put_or_hold(*made, after,
                     [this, to = *made, call, what = std::forward<Command>(command)](
                         wait_list ready) { return put(*to, call, ready, what); });
}

}  // namespace isthmus::cuda
