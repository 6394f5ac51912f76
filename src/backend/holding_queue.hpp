#pragma once
// A queue of a driver whose queues do not wait for the host.
//
// What comes behind an event that the host or another driver completes is held back here, with all
// that comes after it on the queue, till a thread of the library has seen that event and puts it to
// the driver. What others put to the driver's queue meanwhile comes first.

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
  // Has put(after) give the operation to the driver, now or later, or tell why not; `after` is what
  // the driver knows or has ended. On failure nothing is in flight.
  template <class Put>
  [[nodiscard]] result<ref<event>> put_or_hold(ref<late_event> made, wait_list after, Put&& put);

  // Two operations of which none comes between: `first` as above, and once the driver has it, what
  // `then` does, always on a thread of the library. What comes after waits till that has returned.
  template <class Put>
  [[nodiscard]] result<ref<event>> put_and_hold(ref<late_event> first, wait_list after, Put&& put,
                                                ref<late_event> made,
                                                std::function<error(wait_list)> then);

  // What is foreign is waited for here.
  [[nodiscard]] result<ref<event>> import(event& foreign) override { return ref<event>{&foreign}; }
  // What the driver has cannot fail what waits for it; what is held back yet may be refused.
  [[nodiscard]] result<ref<event>> end_of_known(const ref<event>& known,
                                                const ref<event>& end) override {
    return known->is_put() && !known->settled() ? known : end;
  }

 private:
  // An operation that the driver has not got yet.
  struct held_operation {
    ref<late_event> made;
    std::vector<ref<event>> after;
    std::function<error(wait_list)> put;
    std::vector<ref<event>> earlier{};  // what the queue had when it was held back
  };

  // On failure the operation, where it was held back already, is in `refused`, which goes once
  // `submitting_` is released: what it owns may submit to this queue as it ends.
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

  // Held while an operation is put, but for those that were held back: there is one thread for
  // these, and nothing else is put while there are any.
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

// The failure that ends what stands behind these; none if none has failed.
[[nodiscard]] error failed_dependency_in(wait_list after);

}  // namespace isthmus
