#pragma once
// What is to be done once an engine's lock is given back.
//
// One engine's step allows others theirs, on other devices too. They are put down here and worked
// off in a loop: no engine's lock is taken under another's, nothing of the outside (continuations,
// destructors) runs under one, and a chain of any length needs no stack. Nor does it need memory:
// what an operation will be put down with was made when it was submitted.

#include <memory>
#include <optional>

#include "backend/sim/operation.hpp"

namespace isthmus::sim {

// The operations that ended, in order, linked by themselves.
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
  operation* last_ = nullptr;  // where there is a first
};

class agenda {
 public:
  // What the caller of an engine wants.
  std::optional<demanded> demand;
  chain<demanded> demands;
  chain<passed_event> releases;
  ended_list ended;  // to complete, in this order
  // Dropped when all is done.
  chain<demanded> dropped;
  chain<passed_event> spent;

  agenda() = default;
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;
  ~agenda() { work_off(); }

  // A lane to go on with. Pre: its engine's lock is held. One that another agenda has already is
  // left to that one.
  void go_on(engine& home, const std::shared_ptr<lane>& on) noexcept;
  // Pre: the caller holds no engine's lock. Post: nothing is left.
  void work_off() noexcept;

 private:
  [[nodiscard]] bool step() noexcept;
  void run_first_lane() noexcept;

  std::shared_ptr<lane> first_lane_;
  lane* last_lane_ = nullptr;  // where there is a first
};

}  // namespace isthmus::sim
