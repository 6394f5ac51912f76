// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/agenda.hpp"

#include <utility>

#include "backend/sim/engine.hpp"

namespace isthmus::sim {

void EndedList::push_back(Ref<Operation> added) noexcept {
  auto* const one = added.detach();
  (first_ == nullptr ? first_ : last_->next_) = one;
  last_ = one;
}

Ref<Operation> EndedList::pop_front() noexcept {
  auto* const one = first_;
  first_ = std::exchange(one->next_, nullptr);
  return Ref<Operation>::adopt(one);
}

void Agenda::go_on(Engine& engine, const std::shared_ptr<CopyEngine>& lane) noexcept {
  if (lane->keeps_home) {
    return;
  }
  lane->keeps_home = engine.shared_from_this();
  (first_lane_ == nullptr ? first_lane_ : last_lane_->next) = lane;
  last_lane_ = lane.get();
}

// Keeps the engine alive while it runs: an operation that ends there may hold its last reference.
void Agenda::run_first_lane() noexcept {
  const auto on = std::exchange(first_lane_, nullptr);
  first_lane_ = std::exchange(on->next, nullptr);
  const auto home = on->keeps_home;
  home->run(on, *this);
}

// Demands come first, so that everything wanted is known before any of it runs.
bool Agenda::step() noexcept {
  if (demand) {
    const auto order = *std::exchange(demand, std::nullopt);
    order.wanted->engine().hurry(order, *this);
  } else if (!demands.empty()) {
    auto order = demands.pop_front();
    order->wanted->engine().hurry(*order, *this);
    dropped.push_back(std::move(order));
  } else if (!releases.empty()) {
    auto passed = releases.pop_front();
    passed->waiting->engine().pass_event(*passed, *this);
    spent.push_back(std::move(passed));
  } else if (first_lane_ != nullptr) {
    run_first_lane();
  } else if (!ended.empty()) {
    ended.pop_front()->end();
  } else {
    return false;
  }
  return true;
}

void Agenda::work_off() noexcept {
  while (step()) {
  }
  dropped.clear();
  spent.clear();
}

}  // namespace isthmus::sim
