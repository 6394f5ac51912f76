// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two kinds of dependency. An event in a wait list propagates its failure (the caller's
// `after`), unless it is wrapped by `order_only` (a conflict on the same bytes): then the operation
// runs once the event has ended, whatever its outcome.

#include <vector>

#include "backend/event.hpp"

namespace isthmus {

// Ends, with success, when another event has ended. Queues unwrap it: a driver that can wait for
// the wrapped event waits for that one (Queue::translate). Thread-safe. Costs one allocation of
// about 100 bytes.
class OrderOnlyEvent final : public Event, private Continuation {
 public:
  explicit OrderOnlyEvent(Ref<Event> wrapped) noexcept : wrapped_{std::move(wrapped)} {}

  [[nodiscard]] const Ref<Event>& wrapped() const noexcept { return wrapped_; }
  // The event that `candidate` wraps if it is an OrderOnlyEvent, else null.
  [[nodiscard]] static const Ref<Event>* wrapped_by(Event& candidate) noexcept;

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  void run(Event& ended) noexcept override;

  const Ref<Event> wrapped_;
  std::atomic<bool> armed_{false};  // if set, `wrapped_` holds a reference to this until it ends
};

// Throws std::bad_alloc. Returns an OrderOnlyEvent unchanged.
[[nodiscard]] Ref<Event> order_only(const Ref<Event>& event);
[[nodiscard]] std::vector<Ref<Event>> order_only(WaitList events);

}  // namespace isthmus
