// SPDX-License-Identifier: Apache-2.0
#include "backend/deferring_queue.hpp"

#include "backend/library_threads.hpp"
#include "core/expects.hpp"

namespace isthmus {

Error failed_dependency_in(WaitList after) {
  for (const auto& dependency : after) {
    if (dependency->settled() && !dependency->succeeded()) {
      return failed_dependency(dependency->outcome());
    }
  }
  return {};
}

// The first deferred operation starts the work of a library thread,
// which also submits the later ones.
Error DeferringQueue::defer(DeferredOperation operation, DeferredOperation& rejected) {
  add_own_unfinished(operation.earlier);
  deferred_.push_back(std::move(operation));
  if (deferred_.size() != 1) {
    return {};
  }
  set_has_deferred_operations(true);
  Error error;
  try {
    run_on_library_thread([this, self = Ref<Queue>{this}] { enqueue_deferred(); },
                          [&error](Error reason) { error = std::move(reason); });
  } catch (const std::bad_alloc&) {
    error = Error::no_memory();
  }
  if (error) {
    rejected = pop_first_deferred();
  }
  return error;
}

void DeferringQueue::enqueue_deferred() noexcept {
  for (bool more = true; more;) {
    DeferredOperation* next = nullptr;
    {
      const LockGuard hold{enqueue_lock_};
      next = &deferred_.front();
    }
    enqueue_when_ready(*next);
    DeferredOperation done;  // releases its references outside the lock
    const LockGuard hold{enqueue_lock_};
    done = pop_first_deferred();
    more = !deferred_.empty();
  }
}

// Completes a rejected operation only after all operations that precede it have completed. Later
// users of the memory and later operations on the queue rely on that order.
void DeferringQueue::enqueue_when_ready(DeferredOperation& operation) const noexcept {
  for (const auto& dependency : operation.after) {
    wait_until_ready(*dependency);
  }
  Error error;
  try {
    error = operation.enqueue(operation.after);
  } catch (const std::bad_alloc&) {
    error = Error::no_memory();
  }
  if (error) {
    wait_until_ended(operation.after);
    wait_until_ended(operation.earlier);
    operation.event->reject(std::move(error));
  }
}

void DeferringQueue::wait_until_ready(Event& dependency) const noexcept {
  if (can_wait_for(dependency)) {
    static_cast<void>(static_cast<PolledEvent&>(dependency).wait_until_enqueued(std::nullopt));
  } else {
    static_cast<void>(dependency.wait_unchecked(std::nullopt));
  }
}

DeferringQueue::DeferredOperation DeferringQueue::pop_first_deferred() noexcept {
  ISTHMUS_EXPECTS(!deferred_.empty());
  auto first = std::move(deferred_.front());
  deferred_.pop_front();
  set_has_deferred_operations(!deferred_.empty());
  return first;
}

}  // namespace isthmus
