// SPDX-License-Identifier: Apache-2.0
#include "backend/order_only.hpp"

namespace isthmus {

const ref<event>* order_only_event::waited_by(event& candidate) noexcept {
  const auto* const only = dynamic_cast<order_only_event*>(&candidate);
  return only == nullptr ? nullptr : &only->waited_;
}

void order_only_event::refresh() noexcept {
  if (!waited_->pending()) {
    complete({});
  }
}

void order_only_event::arm() noexcept {
  if (!armed_.exchange(true, std::memory_order_acq_rel)) {
    retain();
    waited_->on_complete(*this);
  }
}

void order_only_event::block(const os::deadline& until) noexcept {
  static_cast<void>(waited_->wait(until));
  refresh();
}

void order_only_event::run(event&) noexcept {
  complete({});
  release();
}

ref<event> order_only(const ref<event>& before) {
  if (order_only_event::waited_by(*before) != nullptr) {
    return before;
  }
  return ref<event>{make_ref<order_only_event>(before)};
}

std::vector<ref<event>> order_only(wait_list before) {
  std::vector<ref<event>> all;
  all.reserve(before.size());
  for (const auto& each : before) {
    all.push_back(order_only(each));
  }
  return all;
}

}  // namespace isthmus
