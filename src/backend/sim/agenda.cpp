// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/agenda.hpp"

#include <utility>

#include "backend/sim/engine.hpp"

namespace isthmus::sim {

void EndedList::push_back(Ref<Operation> added) noexcept {
  auto* const operation = added.detach();
  (first_ == nullptr ? first_ : last_->next_) = operation;
  last_ = operation;
}

Ref<Operation> EndedList::pop_front() noexcept {
  auto* const operation = first_;
  first_ = std::exchange(operation->next_, nullptr);
  return Ref<Operation>::adopt(operation);
}

void Agenda::schedule(Engine& engine, const std::shared_ptr<CopyEngine>& copy_engine) noexcept {
  if (copy_engine->keep_alive) {
    return;
  }
  copy_engine->keep_alive = engine.shared_from_this();
  (first_copy_engine_ == nullptr ? first_copy_engine_ : last_copy_engine_->next) = copy_engine;
  last_copy_engine_ = copy_engine.get();
}

// Keeps the engine alive while it runs: an operation that ends there may hold its last reference.
void Agenda::run_first_copy_engine() noexcept {
  const auto copy_engine = std::exchange(first_copy_engine_, nullptr);
  first_copy_engine_ = std::exchange(copy_engine->next, nullptr);
  const auto engine = copy_engine->keep_alive;
  engine->run(copy_engine, *this);
}

// Demands come first, so that everything demanded is known before any of it runs.
bool Agenda::step() noexcept {
  if (demand) {
    const auto demanded = *std::exchange(demand, std::nullopt);
    demanded.operation->engine().apply_demand(demanded, *this);
  } else if (!demands.empty()) {
    auto demanded = demands.pop_front();
    demanded->operation->engine().apply_demand(*demanded, *this);
    dropped.push_back(std::move(demanded));
  } else if (!releases.empty()) {
    auto passed = releases.pop_front();
    passed->waiting->engine().pass_event(*passed, *this);
    passed_events.push_back(std::move(passed));
  } else if (first_copy_engine_ != nullptr) {
    run_first_copy_engine();
  } else if (!ended.empty()) {
    ended.pop_front()->end();
  } else {
    return false;
  }
  return true;
}

void Agenda::run_all() noexcept {
  while (step()) {
  }
  dropped.clear();
  passed_events.clear();
}

}  // namespace isthmus::sim
