// SPDX-License-Identifier: Apache-2.0
#include "backend/deferring_queue.hpp"

#include "backend/library_threads.hpp"

namespace isthmus {

Error failed_dependency_in(WaitList after) {
  for (const auto& before : after) {
    if (before->settled() && !before->succeeded()) {
      return failed_dependency(before->outcome());
    }
  }
  return {};
}

// Pre: `submitting_` is held. The first held operation starts a thread, which also serves the later
// ones.
Error DeferringQueue::hold_back(HeldOperation operation, HeldOperation& refused) {
  add_unfinished_of_ours(operation.earlier);
  held_.push_back(std::move(operation));
  if (held_.size() != 1) {
    return {};
  }
  set_holds_back(true);
  Error failed;
  try {
    run_on_library_thread([this, keep = Ref<Queue>{this}] { put_what_is_held(); },
                          [&failed](Error why) { failed = std::move(why); });
  } catch (const std::bad_alloc&) {
    failed = Error::no_memory();
  }
  if (failed) {
    refused = drop_first_held();
  }
  return failed;
}

void DeferringQueue::put_what_is_held() noexcept {
  for (bool more = true; more;) {
    HeldOperation* next = nullptr;
    {
      const std::lock_guard hold{submitting_};
      next = &held_.front();
    }
    put_late(*next);
    HeldOperation done;  // releases its references outside the lock
    const std::lock_guard hold{submitting_};
    done = drop_first_held();
    more = !held_.empty();
  }
}

// A refused operation ends only after everything that it was ordered after: the next user of the
// memory and the next operation on the queue take its end for theirs.
void DeferringQueue::put_late(HeldOperation& operation) const noexcept {
  for (const auto& before : operation.after) {
    wait_till_ready(*before);
  }
  Error failed;
  try {
    failed = operation.put(operation.after);
  } catch (const std::bad_alloc&) {
    failed = Error::no_memory();
  }
  if (failed) {
    let_end(operation.after);
    let_end(operation.earlier);
    operation.made->refuse(std::move(failed));
  }
}

// Pre: on a library thread.
void DeferringQueue::wait_till_ready(Event& before) const noexcept {
  if (knows(before)) {
    static_cast<void>(static_cast<PolledEvent&>(before).wait_till_put(std::nullopt));
  } else {
    static_cast<void>(before.wait(std::nullopt));
  }
}

// Pre: `submitting_` is held, and an operation is held back.
DeferringQueue::HeldOperation DeferringQueue::drop_first_held() noexcept {
  auto first = std::move(held_.front());
  held_.pop_front();
  set_holds_back(!held_.empty());
  return first;
}

}  // namespace isthmus
