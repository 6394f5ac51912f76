// SPDX-License-Identifier: Apache-2.0
#pragma once
// Distinguishes two kinds of dependency. An event in a wait list, such as the caller's `after`,
// propagates its failure. An event wrapped by `order_only`, for a conflict on the same bytes, does
// not: the operation runs once the event has completed, whatever its outcome.

#include <vector>

#include "backend/event.hpp"

namespace isthmus {

// Completes with success once the wrapped event has completed. Queues unwrap it: a driver that can
// wait for the wrapped event does so (Queue::translate). Thread-safe. Costs one allocation of about
// 100 bytes.
class OrderOnlyEvent final : public Event, private Continuation {
 public:
  explicit OrderOnlyEvent(Ref<Event> wrapped) noexcept : wrapped_{std::move(wrapped)} {}

  [[nodiscard]] const Ref<Event>& wrapped() const noexcept { return wrapped_; }
  // The event that `candidate` wraps if it is an OrderOnlyEvent, else null.
  [[nodiscard]] static const Ref<Event>* wrapped_by(Event& candidate) noexcept;
  void add_positions(std::vector<QueuePosition>& out) const override {
    wrapped_->add_positions(out);
  }

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  void run(Event& ended) noexcept override;

  const Ref<Event> wrapped_;
  std::atomic<bool> armed_{false};  // if set, this event is retained until `wrapped_` completes
};

// Throws std::bad_alloc. Returns an OrderOnlyEvent unchanged.
[[nodiscard]] Ref<Event> order_only(const Ref<Event>& event);
[[nodiscard]] std::vector<Ref<Event>> order_only(WaitList events);

}  // namespace isthmus
