// SPDX-License-Identifier: Apache-2.0
#include "backend/order_only.hpp"

namespace isthmus {

const Ref<Event>* OrderOnlyEvent::wrapped_by(Event& candidate) noexcept {
  const auto* const wrapper = dynamic_cast<OrderOnlyEvent*>(&candidate);
  return wrapper == nullptr ? nullptr : &wrapper->wrapped_;
}

void OrderOnlyEvent::refresh() noexcept {
  if (!wrapped_->pending()) {
    complete({});
  }
}

void OrderOnlyEvent::arm() noexcept {
  if (!armed_.exchange(true, std::memory_order_acq_rel)) {
    retain();
    wrapped_->on_complete(*this);
  }
}

void OrderOnlyEvent::block(const os::Deadline& until) noexcept {
  static_cast<void>(wrapped_->wait_unchecked(until));
  refresh();
}

void OrderOnlyEvent::run(Event&) noexcept {
  complete({});
  release();
}

Ref<Event> order_only(const Ref<Event>& event) {
  if (OrderOnlyEvent::wrapped_by(*event) != nullptr) {
    return event;
  }
  return Ref<Event>{make_ref<OrderOnlyEvent>(event)};
}

std::vector<Ref<Event>> order_only(WaitList events) {
  std::vector<Ref<Event>> all;
  all.reserve(events.size());
  for (const auto& each : events) {
    all.push_back(order_only(each));
  }
  return all;
}

}  // namespace isthmus
