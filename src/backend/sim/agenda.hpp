// SPDX-License-Identifier: Apache-2.0
#pragma once
// What remains to be done after an engine's lock was released.
//
// A step of one engine enables steps of others, on other devices too. The agenda records them and
// executes them in a loop. So no engine's lock is taken under another one, no continuation or
// destructor runs under one, and a chain of any length needs no stack. It allocates nothing either:
// the nodes were allocated when the operations were submitted. An agenda belongs to one thread.

#include <memory>
#include <optional>

#include "backend/sim/operation.hpp"

namespace isthmus::sim {

// Operations that ended, in order. An intrusive list that holds a reference to each.
class EndedList {
 public:
  EndedList() noexcept = default;
  EndedList(const EndedList&) = delete;
  EndedList& operator=(const EndedList&) = delete;
  ~EndedList() = default;  // empty by then

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push_back(Ref<Operation> added) noexcept;
  [[nodiscard]] Ref<Operation> pop_front() noexcept;

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;  // valid if there is a first
};

class Agenda {
 public:
  // The caller's demand on the engine.
  std::optional<Demanded> demand;
  Chain<Demanded> demands;
  Chain<PassedEvent> releases;
  EndedList ended;  // to complete, in this order
  // Destroyed when everything is done.
  Chain<Demanded> dropped;
  Chain<PassedEvent> passed_events;

  Agenda() = default;
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda() { run_all(); }

  // Continues with the operations of `copy_engine`. Pre: the lock of their engine is held. A copy
  // engine that is in another agenda already is left to that one.
  void schedule(Engine& engine, const std::shared_ptr<CopyEngine>& copy_engine) noexcept;
  // Pre: the caller holds no engine's lock. Post: the agenda is empty.
  void run_all() noexcept;

 private:
  [[nodiscard]] bool step() noexcept;
  void run_first_copy_engine() noexcept;

  std::shared_ptr<CopyEngine> first_copy_engine_;
  CopyEngine* last_copy_engine_ = nullptr;  // valid if there is a first
};

}  // namespace isthmus::sim
