#pragma once
// How operations are put to the driver: the body of queue's templates, for those that use them.

#include <algorithm>

#include "backend/cuda/current.hpp"
#include "backend/cuda/queue.hpp"

namespace isthmus::cuda {

// Whether the driver can be told to wait for it, or need not.
[[nodiscard]] inline bool is_ready(const ref<event>& before) noexcept {
  const auto* known = dynamic_cast<const operation*>(before.get());
  return before->settled() || (known != nullptr && known->is_put());
}

[[nodiscard]] result<ref<operation>> make_operation(const device& where, bool knows_time);

// Pre: all of `after` is ready. DEPENDENCY if one of it failed.
template <class Command>
error queue::put(operation& made, const char* call, wait_list after, const Command& command) const {
  for (const auto& before : after) {
    if (before->settled() && !before->succeeded()) {
      return failed_dependency(before->outcome());
    }
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
  const std::lock_guard hold{submitting_};
  if (!held_.empty() || !std::all_of(after.begin(), after.end(), is_ready)) {
    hold_back({*made, call, {after.begin(), after.end()}, std::forward<Command>(command)});
    return ref<event>{*made};
  }
  if (auto failed = put(**made, call, after, command)) {
    return failed;
  }
  return ref<event>{*made};
}

}  // namespace isthmus::cuda
