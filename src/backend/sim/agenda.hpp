// SPDX-License-Identifier: Apache-2.0
#pragma once
// What remains to be done after an engine's lock was released.
//
// A step of one engine enables steps of others, on other devices too. They are noted here and
// worked off in a loop. So no engine's lock is taken under another one, no outside code
// (continuations, destructors) runs under one, and a chain of any length needs no stack. It needs
// no memory either: the nodes were allocated when the operations were submitted. An agenda belongs
// to one thread.

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
  Chain<PassedEvent> spent;

  Agenda() = default;
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;
  ~Agenda() { work_off(); }

  // Continues with a queue's operations (`lane`). Pre: the lock of their engine is held. A lane
  // that is in another agenda already is left to that one.
  void go_on(Engine& engine, const std::shared_ptr<CopyEngine>& lane) noexcept;
  // Pre: the caller holds no engine's lock. Post: the agenda is empty.
  void work_off() noexcept;

 private:
  [[nodiscard]] bool step() noexcept;
  void run_first_lane() noexcept;

  std::shared_ptr<CopyEngine> first_lane_;
  CopyEngine* last_lane_ = nullptr;  // valid if there is a first
};

}  // namespace isthmus::sim
