// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains queues at the end of the process, before Intel's CPU runtime is torn down. The runtime
// hangs if queues in flight wait for one another, and crashes if an out-of-order queue has commands
// in flight. So unfinished work is ended here: first the gates that never opened are failed, with
// everything that waits for them, then the queues run empty, for 5 seconds at most.

#include <mutex>

#include "os/futex.hpp"

namespace isthmus::opencl {

class Gate;
class DelayedQueue;
class Queue;

// An entry of one of the lists below while its owner is in use.
class DrainedAtExit {
 public:
  DrainedAtExit() = default;
  DrainedAtExit(const DrainedAtExit&) = delete;
  DrainedAtExit& operator=(const DrainedAtExit&) = delete;

 protected:
  ~DrainedAtExit() = default;

 private:
  friend class ExitDrain;
  DrainedAtExit* previous_ = this;
  DrainedAtExit* next_ = this;
};

// Never destroyed, since it outlives every thread. Thread-safe; the lock is held for a few
// instructions.
class ExitDrain {
 public:
  static ExitDrain& only() noexcept;

  // Pre: nothing can open the gate yet.
  void add(Gate& closed) noexcept;
  void add(Queue& open) noexcept;
  void add(DelayedQueue& open) noexcept;
  // Call this before the member is destroyed. Does nothing if it is not in a list, and in a forked
  // child.
  void remove(DrainedAtExit& member) noexcept;

  void run() noexcept;

 private:
  struct List : DrainedAtExit {};

  void append(List& target, DrainedAtExit& member) noexcept;
  static void unlink(DrainedAtExit& member) noexcept;
  [[nodiscard]] bool end_a_gate() noexcept;
  template <class Queue>
  [[nodiscard]] bool await_one_of(List& queues, os::Clock::time_point until) noexcept;

  std::mutex lock_;
  List gates_;
  List queues_;
  List lingering_;
};

}  // namespace isthmus::opencl
