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
class ended_list {
 public:
  ended_list() noexcept = default;
  ended_list(const ended_list&) = delete;
  ended_list& operator=(const ended_list&) = delete;
  ~ended_list() = default;  // empty by then

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void push_back(ref<operation> added) noexcept;
  [[nodiscard]] ref<operation> pop_front() noexcept;

 private:
  operation* first_ = nullptr;
  operation* last_ = nullptr;  // valid if there is a first
};

class agenda {
 public:
  // The caller's demand on the engine.
  std::optional<demanded> demand;
  chain<demanded> demands;
  chain<passed_event> releases;
  ended_list ended;  // to complete, in this order
  // Destroyed when everything is done.
  chain<demanded> dropped;
  chain<passed_event> spent;

  agenda() = default;
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;
  ~agenda() { work_off(); }

  // Continues with a queue's operations (`lane`). Pre: the lock of their engine is held. A lane
  // that is in another agenda already is left to that one.
  void go_on(engine& home, const std::shared_ptr<lane>& on) noexcept;
  // Pre: the caller holds no engine's lock. Post: the agenda is empty.
  void work_off() noexcept;

 private:
  [[nodiscard]] bool step() noexcept;
  void run_first_lane() noexcept;

  std::shared_ptr<lane> first_lane_;
  lane* last_lane_ = nullptr;  // valid if there is a first
};

}  // namespace isthmus::sim
