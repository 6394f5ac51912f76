// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/agenda.hpp"

#include <utility>

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

void Agenda::push_queue(const std::shared_ptr<QueueOperations>& added) noexcept {
  (first_queue_ == nullptr ? first_queue_ : last_queue_->next) = added;
  last_queue_ = added.get();
}

std::shared_ptr<QueueOperations> Agenda::pop_queue() noexcept {
  auto first = std::exchange(first_queue_, nullptr);
  first_queue_ = std::exchange(first->next, nullptr);
  return first;
}

}  // namespace isthmus::sim
