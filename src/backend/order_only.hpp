// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two kinds of dependency. An event in a wait list propagates its failure (the caller's
// `after`), unless it is wrapped by `order_only` (a conflict on the same bytes): then the operation
// runs once the event has ended, whatever its outcome.

#include <vector>

#include "backend/event.hpp"

namespace isthmus {

// Ends, with success, when another event has ended. Queues look through it: a driver that knows the
// other event waits for that one (queue::translate). Thread-safe. Costs one allocation of about 100
// bytes.
class OrderOnlyEvent final : public Event, private Continuation {
 public:
  explicit OrderOnlyEvent(Ref<Event> waited) noexcept : waited_{std::move(waited)} {}

  [[nodiscard]] const Ref<Event>& waited() const noexcept { return waited_; }
  // The event that `candidate` wraps if it is an order_only_event, else null.
  [[nodiscard]] static const Ref<Event>* waited_by(Event& candidate) noexcept;

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void block(const os::Deadline& until) noexcept override;

 private:
  void run(Event& ended) noexcept override;

  const Ref<Event> waited_;
  std::atomic<bool> armed_{false};  // if set, `waited_` holds a reference to this until it ends
};

// Throws std::bad_alloc. Returns an order_only_event unchanged.
[[nodiscard]] Ref<Event> order_only(const Ref<Event>& before);
[[nodiscard]] std::vector<Ref<Event>> order_only(WaitList before);

}  // namespace isthmus
