// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_driven.hpp"

#include <functional>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus {

HostDriven::HostDriven(const CopyPlan& plan)
    : destination_{plan.destination.memory}, source_{plan.source.memory} {
  touched_.add(plan.destination, plan.destination_bytes, true);
  touched_.add(plan.source, plan.source_bytes, false);
}

// On a default stream the operation must also run after work that other libraries submitted there.
// Only the driver can report that work, so a fence is submitted.
Result<void> HostDriven::collect(Queue* queue) {
  touched_.collect(nullptr, conflicts_);
  if (queue != nullptr && queue->traits().is_default_stream) {
    auto fence = queue->fence({});
    ISTHMUS_TRY(fence);
    conflicts_.push_back(*std::move(fence));
  }
  return touched_.collect_queues(queue, conflicts_);
}

Result<void> HostDriven::wait_for_dependencies() const {
  ISTHMUS_TRY(wait_for_all(after_));
  return wait_until_ended(conflicts_, std::nullopt);
}

Error HostDriven::run_guarded() noexcept try {
  return move().take_error();
} catch (const std::bad_alloc&) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no host memory for the intermediate storage of a copy");
}

// Runs on a library thread. All driver objects are released before the completion is reported,
// since the process may exit immediately afterwards. Even if the operation fails, it completes only
// after everything that it is ordered after: later users of the memory wait only for this
// operation.
Error HostDriven::run_to_completion() noexcept {
  auto outcome = wait_for_dependencies().take_error();
  if (outcome) {
    wait_until_ended(after_);
    wait_until_ended(conflicts_);
  }
  const os::DriverCall calls;
  if (!calls) {
    return fail(ISTHMUS_ERROR_FORKED, "the copy was not executed: the process is exiting");
  }
  if (!outcome) {
    outcome = run_guarded();
  }
  release_all();
  return outcome;
}

void HostDriven::release_all() noexcept {
  release_resources();
  touched_.cancel();
  destination_ = nullptr;
  source_ = nullptr;
  after_.clear();
  conflicts_.clear();
}

// Waits and copies on a library thread; a fence makes later work on `queue` wait for the operation.
// Nothing may fail or block after the fence is submitted: `done` may depend on events that the
// caller completes only after this function has returned.
Submitted HostDriven::run_async(Queue* queue, const std::shared_ptr<HostDriven>& operation) {
  const Ref<Event> done{operation->done_};
  auto work = ReservedWork::make([operation] {
    auto outcome = operation->run_to_completion();
    const auto event = operation->done_;
    operation->owners_.clear();
    event->finish(std::move(outcome));
  });
  ISTHMUS_TRY(work);
  operation->done_->follow(operation->after_);
  operation->done_->follow(operation->conflicts_);
  operation->touched_.reserve();
  if (queue != nullptr) {
    Undo finish_on_error{[&] { operation->done_->finish({}); }};
    ISTHMUS_TRY(queue->fence(std::span{&done, 1}));
    finish_on_error.dismiss();
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
    return HostDriven::run_async(queue, operation);
  }
  const Undo cleanup{[&] {  // other references to the operation may remain
    operation->release_all();
    operation->owners_.clear();
  }};
  ISTHMUS_TRY(operation->wait_for_dependencies());
  ISTHMUS_TRY(operation->move());
  return options.blocking ? Ref<Event>{} : completed_event();
}

}  // namespace isthmus
