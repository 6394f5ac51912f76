// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue for drivers whose queues cannot wait for the host.
//
// An operation that follows an event of the host or of another driver is held back here, with
// everything after it on the queue, until a library thread has seen that event complete and submits
// the operation to the driver. Work that other code submits to the driver's queue meanwhile runs
// first. Thread-safe.

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>

#include "backend/polled_event.hpp"
#include "backend/queue.hpp"

namespace isthmus {

class DeferringQueue : public Queue {
 public:
  using Queue::Queue;

 protected:
  // Calls put(after), now or later, which submits the operation to the driver or returns why it
  // cannot. By then each event of `after` has completed or is known to the driver. On failure
  // nothing is in flight.
  template <class Put>
  [[nodiscard]] Result<Ref<Event>> put_or_hold(Ref<PolledEvent> made, WaitList after, Put&& put);

  // Two operations without another between them: `first` as above and, once the driver has it,
  // `then`, which always runs on a library thread. Later operations wait until `then` has returned.
  template <class Put>
  [[nodiscard]] Result<Ref<Event>> put_and_hold(Ref<PolledEvent> first, WaitList after, Put&& put,
                                                Ref<PolledEvent> made,
                                                std::function<Error(WaitList)> then);

  // A foreign event needs no import, since it is waited for on the host.
  [[nodiscard]] Result<Ref<Event>> import(Event& foreign) override { return Ref<Event>{&foreign}; }
  // An operation that the driver has cannot make the one that waits for it fail. One that is held
  // back may still be refused.
  [[nodiscard]] Result<Ref<Event>> end_of_known(const Ref<Event>& known,
                                                const Ref<Event>& end) override {
    return known->is_put() && !known->settled() ? known : end;
  }

 private:
  // An operation that the driver has not received yet.
  struct HeldOperation {
    Ref<PolledEvent> made;
    std::vector<Ref<Event>> after;
    std::function<Error(WaitList)> put;
    std::vector<Ref<Event>> earlier{};  // pending on the queue when this was held back
  };

  // On failure `refused` receives the operation if it had been held back. The caller destroys it
  // after releasing `submitting_`: the destruction of what it owns may submit to this queue.
  template <class Put>
  [[nodiscard]] Error put_now_or_later(Ref<PolledEvent> made, WaitList after, Put&& put,
                                       HeldOperation& refused);

  [[nodiscard]] bool is_ready(const Ref<Event>& before) const noexcept {
    return before->settled() || (knows(*before) && before->is_put());
  }
  [[nodiscard]] Error hold_back(HeldOperation operation, HeldOperation& refused);
  void put_what_is_held() noexcept;
  void put_late(HeldOperation& operation) const noexcept;
  void wait_till_ready(Event& before) const noexcept;
  [[nodiscard]] HeldOperation drop_first_held() noexcept;

  // Held during submissions to the driver, except those of held operations: a single thread makes
  // these, and nothing else is submitted while there are any.
  std::mutex submitting_;
  std::deque<HeldOperation> held_;
};

// Pre: `submitting_` is held.
template <class Put>
Error DeferringQueue::put_now_or_later(Ref<PolledEvent> made, WaitList after, Put&& put,
                                       HeldOperation& refused) {
  if (held_.empty() &&
      std::ranges::all_of(after, [this](const auto& before) { return is_ready(before); })) {
    return put(after);
  }
  return hold_back({std::move(made), {after.begin(), after.end()}, std::forward<Put>(put)},
                   refused);
}

template <class Put>
Result<Ref<Event>> DeferringQueue::put_or_hold(Ref<PolledEvent> made, WaitList after, Put&& put) {
  HeldOperation refused;
  const std::lock_guard hold{submitting_};
  if (auto failed = put_now_or_later(made, after, std::forward<Put>(put), refused)) {
    return failed;
  }
  return Ref<Event>{std::move(made)};
}

template <class Put>
Result<Ref<Event>> DeferringQueue::put_and_hold(Ref<PolledEvent> first, WaitList after, Put&& put,
                                                Ref<PolledEvent> made,
                                                std::function<Error(WaitList)> then) {
  HeldOperation refused;
  const std::lock_guard hold{submitting_};
  if (auto failed = put_now_or_later(first, after, std::forward<Put>(put), refused)) {
    return failed;
  }
  if (auto failed = hold_back({made, {std::move(first)}, std::move(then)}, refused)) {
    return failed;
  }
  return Ref<Event>{std::move(made)};
}

// The failure for an operation that waits for these events; no error if none has failed.
[[nodiscard]] Error failed_dependency_in(WaitList after);

}  // namespace isthmus
