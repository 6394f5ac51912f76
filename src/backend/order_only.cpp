// SPDX-License-Identifier: Apache-2.0
#include "backend/order_only.hpp"

namespace isthmus {

const Ref<Event>* OrderOnlyEvent::waited_by(Event& candidate) noexcept {
  const auto* const only = dynamic_cast<OrderOnlyEvent*>(&candidate);
  return only == nullptr ? nullptr : &only->waited_;
}

void OrderOnlyEvent::refresh() noexcept {
  if (!waited_->pending()) {
    complete({});
  }
}

void OrderOnlyEvent::arm() noexcept {
  if (!armed_.exchange(true, std::memory_order_acq_rel)) {
    retain();
    waited_->on_complete(*this);
  }
}

void OrderOnlyEvent::block(const os::Deadline& until) noexcept {
  static_cast<void>(waited_->wait(until));
  refresh();
}

void OrderOnlyEvent::run(Event&) noexcept {
  complete({});
  release();
}

Ref<Event> order_only(const Ref<Event>& before) {
  if (OrderOnlyEvent::waited_by(*before) != nullptr) {
    return before;
  }
  return Ref<Event>{make_ref<OrderOnlyEvent>(before)};
}

std::vector<Ref<Event>> order_only(WaitList before) {
  std::vector<Ref<Event>> all;
  all.reserve(before.size());
  for (const auto& each : before) {
    all.push_back(order_only(each));
  }
  return all;
}

}  // namespace isthmus
