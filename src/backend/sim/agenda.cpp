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

void Agenda::schedule(Engine& engine,
                      const std::shared_ptr<QueueOperations>& queue_operations) noexcept {
  if (queue_operations->keep_alive) {
    return;
  }
  queue_operations->keep_alive = engine.shared_from_this();
  (first_queue_ == nullptr ? first_queue_ : last_queue_->next) = queue_operations;
  last_queue_ = queue_operations.get();
}

// Keeps the engine alive while it runs: an operation that ends meanwhile may hold the last
// reference to the engine.
void Agenda::run_first_queue() noexcept {
  const auto queue_operations = std::exchange(first_queue_, nullptr);
  first_queue_ = std::exchange(queue_operations->next, nullptr);
  const auto engine = queue_operations->keep_alive;
  engine->run(queue_operations, *this);
}

// Applies demands first, so that all demanded operations are known before any of them runs.
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
  } else if (first_queue_ != nullptr) {
    run_first_queue();
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
