// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains queues at process exit, before Intel's CPU runtime is unloaded. Otherwise the runtime
// hangs if queues with unfinished work wait for one another, and crashes if an out-of-order queue
// has commands in flight. First fails the gates that never opened, and thus all work that waits for
// them. Then waits until the queues are empty, for at most 5 seconds.

#include <mutex>

#include "os/futex.hpp"

namespace isthmus::opencl {

class Gate;
class DelayedQueue;
class Queue;

// The base of objects that can be in a list of ExitDrain.
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

// Never destroyed, since it must outlive every thread. Thread-safe; the lock is held for a few
// instructions.
class ExitDrain {
 public:
  static ExitDrain& instance() noexcept;

  // Pre: nothing can open the gate yet.
  void add(Gate& gate) noexcept;
  void add(Queue& queue) noexcept;
  void add(DelayedQueue& queue) noexcept;
  // Called before the member is destroyed. Does nothing if the member is in no list, and in a
  // forked child.
  void remove(DrainedAtExit& member) noexcept;

  void run() noexcept;

 private:
  struct List : DrainedAtExit {};

  void append(List& target, DrainedAtExit& member) noexcept;
  static void unlink(DrainedAtExit& member) noexcept;
  [[nodiscard]] bool end_next_gate() noexcept;
  template <class Queue>
  [[nodiscard]] bool drain_next(List& queues, os::Clock::time_point until) noexcept;

  std::mutex lock_;
  List gates_;
  List queues_;
  List delayed_queues_;
};

}  // namespace isthmus::opencl
