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

#include "backend/late_event.hpp"
#include "backend/queue.hpp"

namespace isthmus {

class holding_queue : public queue {
 public:
  using queue::queue;

 protected:
  // Calls put(after), now or later, which submits the operation to the driver or returns why it
  // cannot. By then each event of `after` has completed or is known to the driver. On failure
  // nothing is in flight.
  template <class Put>
  [[nodiscard]] result<ref<event>> put_or_hold(ref<late_event> made, wait_list after, Put&& put);

  // Two operations without another between them: `first` as above and, once the driver has it,
  // `then`, which always runs on a library thread. Later operations wait until `then` has returned.
  template <class Put>
  [[nodiscard]] result<ref<event>> put_and_hold(ref<late_event> first, wait_list after, Put&& put,
                                                ref<late_event> made,
                                                std::function<error(wait_list)> then);

  // A foreign event needs no import, since it is waited for on the host.
  [[nodiscard]] result<ref<event>> import(event& foreign) override { return ref<event>{&foreign}; }
  // An operation that the driver has cannot make the one that waits for it fail. One that is held
  // back may still be refused.
  [[nodiscard]] result<ref<event>> end_of_known(const ref<event>& known,
                                                const ref<event>& end) override {
    return known->is_put() && !known->settled() ? known : end;
  }

 private:
  // An operation that the driver has not received yet.
  struct held_operation {
    ref<late_event> made;
    std::vector<ref<event>> after;
    std::function<error(wait_list)> put;
    std::vector<ref<event>> earlier{};  // pending on the queue when this was held back
  };

  // On failure `refused` receives the operation if it had been held back. The caller destroys it
  // after releasing `submitting_`: the destruction of what it owns may submit to this queue.
  template <class Put>
  [[nodiscard]] error put_now_or_later(ref<late_event> made, wait_list after, Put&& put,
                                       held_operation& refused);

  [[nodiscard]] bool is_ready(const ref<event>& before) const noexcept {
    return before->settled() || (knows(*before) && before->is_put());
  }
  [[nodiscard]] error hold_back(held_operation what, held_operation& refused);
  void put_what_is_held() noexcept;
  void put_late(held_operation& what) const noexcept;
  void wait_till_ready(event& before) const noexcept;
  [[nodiscard]] held_operation drop_first_held() noexcept;

  // Held during submissions to the driver, except those of held operations: a single thread makes
  // these, and nothing else is submitted while there are any.
  std::mutex submitting_;
  std::deque<held_operation> held_;
};

// Pre: `submitting_` is held.
template <class Put>
error holding_queue::put_now_or_later(ref<late_event> made, wait_list after, Put&& put,
                                      held_operation& refused) {
  if (held_.empty() &&
      std::ranges::all_of(after, [this](const auto& before) { return is_ready(before); })) {
    return put(after);
  }
  return hold_back({std::move(made), {after.begin(), after.end()}, std::forward<Put>(put)},
                   refused);
}

template <class Put>
result<ref<event>> holding_queue::put_or_hold(ref<late_event> made, wait_list after, Put&& put) {
  held_operation refused;
  const std::lock_guard hold{submitting_};
  if (auto failed = put_now_or_later(made, after, std::forward<Put>(put), refused)) {
    return failed;
  }
  return ref<event>{std::move(made)};
}

template <class Put>
result<ref<event>> holding_queue::put_and_hold(ref<late_event> first, wait_list after, Put&& put,
                                               ref<late_event> made,
                                               std::function<error(wait_list)> then) {
  held_operation refused;
  const std::lock_guard hold{submitting_};
  if (auto failed = put_now_or_later(first, after, std::forward<Put>(put), refused)) {
    return failed;
  }
  if (auto failed = hold_back({made, {std::move(first)}, std::move(then)}, refused)) {
    return failed;
  }
  return ref<event>{std::move(made)};
}

// The failure for an operation that waits for these events; no error if none has failed.
[[nodiscard]] error failed_dependency_in(wait_list after);

}  // namespace isthmus
