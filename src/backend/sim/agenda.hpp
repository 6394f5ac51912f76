// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps that remain to be executed after an engine's lock was released.
//
// A step of one engine can enable further steps, also of the engines of other devices. The agenda
// records these steps, and `Engine::execute` executes them in a loop. Thus no thread acquires an
// engine's lock while it holds another one, no continuation or destructor runs under such a lock,
// and a chain of steps of any length causes no recursion. Recording a step allocates nothing, since
// the nodes were allocated when the operations were submitted. An agenda is used by one thread.

#include <memory>
#include <optional>

#include "backend/sim/operation.hpp"
#include "backend/sim/queue_operations.hpp"

namespace isthmus::sim {

// Operations that have ended, in order. An intrusive list that holds a reference to each.
class EndedList {
 public:
  EndedList() noexcept = default;
  EndedList(const EndedList&) = delete;
  EndedList& operator=(const EndedList&) = delete;
  ~EndedList() = default;  // the list is empty at this time

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push_back(Ref<Operation> added) noexcept;
  [[nodiscard]] Ref<Operation> pop_front() noexcept;

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;  // valid if the list is not empty
};

class Agenda {
 public:
  // The demand of the thread that owns the agenda.
  std::optional<Demanded> demand;
  Chain<Demanded> demands;
  Chain<PassedEvent> releases;
  EndedList ended;  // to complete, in this order
  // Steps that were executed. Destroyed after all others.
  Chain<Demanded> dropped;
  Chain<PassedEvent> passed_events;

  Agenda() = default;
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda() = default;  // all steps were executed by this time

  // The queues whose operations are to run, in order. `push_queue` is called under the lock of the
  // engine of `added`, which is in no agenda.
  [[nodiscard]] bool has_queue() const noexcept { return first_queue_ != nullptr; }
  void push_queue(const std::shared_ptr<QueueOperations>& added) noexcept;
  [[nodiscard]] std::shared_ptr<QueueOperations> pop_queue() noexcept;

 private:
  std::shared_ptr<QueueOperations> first_queue_;
  QueueOperations* last_queue_ = nullptr;  // valid if the list is not empty
};

}  // namespace isthmus::sim
