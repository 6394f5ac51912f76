// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_driven.hpp"

#include <functional>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {

HostDriven::HostDriven(const CopyPlan& movement)
    : destination_{movement.destination.memory}, source_{movement.source.memory} {
  touched_.add(movement.destination, movement.destination_bytes, true);
  touched_.add(movement.source, movement.source_bytes, false);
}

// Work that other libraries submitted to a default stream comes first, and only the driver knows
// it.
Result<void> HostDriven::collect(Queue* queue) {
  touched_.collect(nullptr, before_);
  if (queue != nullptr && queue->is_default_stream()) {
    auto reached = queue->fence({});
    ISTHMUS_TRY(reached);
    before_.push_back(*std::move(reached));
  }
  return touched_.collect_queues(queue, before_);
}

Result<void> HostDriven::await_turn() const {
  ISTHMUS_TRY(wait_for_all(after_));
  let_end(before_);
  return {};
}

Error HostDriven::run_guarded() noexcept try {
  return move().take_error();
} catch (const std::bad_alloc&) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no host memory for the intermediate storage of a copy");
}

// Runs on a library thread. No driver object is left when the end is reported, since the process
// may exit immediately afterwards. It ends after everything that it is ordered after, even if it
// fails: for later users of the memory its end implies theirs.
Error HostDriven::run_to_the_end() noexcept {
  auto outcome = await_turn().take_error();
  if (outcome) {
    let_end(after_);
    let_end(before_);
  }
  const os::DriverCall calls;
  if (!calls) {
    return fail(ISTHMUS_ERROR_FORKED, "the process is ending");
  }
  if (!outcome) {
    outcome = run_guarded();
  }
  forget();
  return outcome;
}

void HostDriven::forget() noexcept {
  release_now();
  touched_.give_up();
  destination_ = nullptr;
  source_ = nullptr;
  after_.clear();
  before_.clear();
}

// Waits and copies on a library thread; later work on `queue` waits for it. Nothing fails or blocks
// after the fence is submitted: `done` may depend on events that the caller completes only once
// this has returned.
Submitted HostDriven::run_behind(Queue* queue, const std::shared_ptr<HostDriven>& operation) {
  const Ref<Event> done{operation->done_};
  auto work = ReservedWork::make([operation] {
    auto outcome = operation->run_to_the_end();
    const auto ended = operation->done_;
    operation->owners_.clear();
    ended->finish(std::move(outcome));
  });
  ISTHMUS_TRY(work);
  operation->touched_.reserve();
  if (queue != nullptr) {
    Undo released{[&] { operation->done_->finish({}); }};
    ISTHMUS_TRY(queue->fence(std::span{&done, 1}));
    released.dismiss();
  }
  operation->touched_.publish(nullptr, done);
  work->start();
  return done;
}

Submitted carry_out(Queue* queue, const std::shared_ptr<HostDriven>& operation,
                    TransferOptions options) {
  ISTHMUS_TRY(operation->collect(queue));
  operation->touched_.add_contents(options);
  operation->after_ = std::move(options.after);
  operation->owners_ = std::move(options.owners);
  if (!options.blocking && (queue == nullptr || queue->device().can(ISTHMUS_CAN_WAIT_FOR_HOST))) {
    return HostDriven::run_behind(queue, operation);
  }
  const Undo forgotten{[&] {  // other references to it may remain
    operation->forget();
    operation->owners_.clear();
  }};
  ISTHMUS_TRY(operation->await_turn());
  ISTHMUS_TRY(operation->move());
  return options.blocking ? Ref<Event>{} : completed_event();
}

}  // namespace isthmus
