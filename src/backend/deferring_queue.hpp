// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue for drivers whose queues cannot wait for the host.
//
// An operation that follows an event of the host or of another driver is deferred, with everything
// after it on the queue. A library thread submits it to the driver once that event has completed.
// Work that other code submits to the driver's queue meanwhile runs first. Thread-safe.

#include <algorithm>
#include <deque>
#include <functional>

#include "backend/polled_event.hpp"
#include "backend/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class DeferringQueue : public Queue {
 public:
  using Queue::Queue;

 protected:
  // Calls `enqueue(after)`, now or later. `enqueue` submits the operation to the driver or returns
  // the driver's error. At that time each event of `after` has completed, or the driver can wait
  // for it. On failure nothing is in flight.
  template <class Enqueue>
  [[nodiscard]] Result<Ref<Event>> enqueue_or_defer(Ref<PolledEvent> event, WaitList after,
                                                    Enqueue&& enqueue);

  // Submits two operations with no other one between them. `enqueue` submits the first one as in
  // `enqueue_or_defer`; its event is `first`. Once the driver has received it, `then` submits the
  // second one on a library thread; its event is `event`. Later operations are deferred until
  // `then` has returned.
  template <class Enqueue>
  [[nodiscard]] Result<Ref<Event>> enqueue_then_defer(Ref<PolledEvent> first, WaitList after,
                                                      Enqueue&& enqueue, Ref<PolledEvent> event,
                                                      std::function<Error(WaitList)> then);

  // A foreign event needs no import, since a library thread waits for it.
  [[nodiscard]] Result<Ref<Event>> import(Event& foreign) override { return Ref<Event>{&foreign}; }
  // Once the driver has received an operation, its failure does not propagate to operations that
  // wait for it, so its event can be used unchanged. A deferred operation may still be rejected.
  [[nodiscard]] Result<Ref<Event>> order_only_event(const Ref<Event>& event,
                                                    const Ref<Event>& end) override {
    return event->is_enqueued() && !event->settled() ? event : end;
  }
  // Whether each event has completed, or the driver can wait for it.
  [[nodiscard]] bool are_ready(WaitList after) const noexcept {
    return std::ranges::all_of(after, [this](const auto& dependency) {
      return dependency->settled() || (can_wait_for(*dependency) && dependency->is_enqueued());
    });
  }

 private:
  // An operation that the driver has not received yet.
  struct DeferredOperation {
    Ref<PolledEvent> event;
    std::vector<Ref<Event>> after;
    std::function<Error(WaitList)> enqueue;
    std::vector<Ref<Event>> earlier{};  // pending on the queue when this was deferred
  };

  // On failure `rejected` receives the operation if it had been deferred. The caller destroys it
  // after releasing `enqueue_lock_`: objects that it owns may submit to this queue when destroyed.
  template <class Enqueue>
  [[nodiscard]] Error enqueue_or_defer_locked(Ref<PolledEvent> event, WaitList after,
                                              Enqueue&& enqueue, DeferredOperation& rejected)
      ISTHMUS_REQUIRES(enqueue_lock_);

  [[nodiscard]] Error defer(DeferredOperation operation, DeferredOperation& rejected)
      ISTHMUS_REQUIRES(enqueue_lock_);
  void enqueue_deferred() noexcept;
  void enqueue_when_ready(DeferredOperation& operation) const noexcept;
  // Called on a library thread, since it blocks.
  void wait_until_ready(Event& dependency) const noexcept;
  [[nodiscard]] DeferredOperation pop_first_deferred() noexcept ISTHMUS_REQUIRES(enqueue_lock_);

  // Held during submissions to the driver, except those of deferred operations: a single thread
  // submits these, and no other operation is submitted to the driver while any is deferred.
  Mutex enqueue_lock_;
  std::deque<DeferredOperation> deferred_ ISTHMUS_GUARDED_BY(enqueue_lock_);
};

template <class Enqueue>
Error DeferringQueue::enqueue_or_defer_locked(Ref<PolledEvent> event, WaitList after,
                                              Enqueue&& enqueue, DeferredOperation& rejected) {
  if (deferred_.empty() && are_ready(after)) {
    return enqueue(after);
  }
  return defer({std::move(event), {after.begin(), after.end()}, std::forward<Enqueue>(enqueue)},
               rejected);
}

template <class Enqueue>
Result<Ref<Event>> DeferringQueue::enqueue_or_defer(Ref<PolledEvent> event, WaitList after,
                                                    Enqueue&& enqueue) {
  DeferredOperation rejected;
  const LockGuard hold{enqueue_lock_};
  if (auto error =
          enqueue_or_defer_locked(event, after, std::forward<Enqueue>(enqueue), rejected)) {
    return error;
  }
  return Ref<Event>{std::move(event)};
}

template <class Enqueue>
Result<Ref<Event>> DeferringQueue::enqueue_then_defer(Ref<PolledEvent> first, WaitList after,
                                                      Enqueue&& enqueue, Ref<PolledEvent> event,
                                                      std::function<Error(WaitList)> then) {
  DeferredOperation rejected;
  const LockGuard hold{enqueue_lock_};
  if (auto error =
          enqueue_or_defer_locked(first, after, std::forward<Enqueue>(enqueue), rejected)) {
    return error;
  }
  if (auto error = defer({event, {std::move(first)}, std::move(then)}, rejected)) {
    return error;
  }
  return Ref<Event>{std::move(event)};
}

// The failure for an operation that waits for these events; no error if none has failed.
[[nodiscard]] Error failed_dependency_in(WaitList after);

}  // namespace isthmus
