// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains queues at process exit, before Intel's CPU runtime is unloaded. Otherwise the runtime
// hangs if queues with unfinished work wait for one another, and crashes if an out-of-order queue
// has commands in flight. First fails the gates that never opened, and thus all work that waits for
// them. Then waits until the queues are empty, for at most 5 seconds.

#include <mutex>

#include "backend/event.hpp"
#include "backend/opencl/api.hpp"
#include "os/futex.hpp"

namespace isthmus::opencl {

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

// A gate, until it opens.
class DrainedGate : public DrainedAtExit {
 public:
  // Returns a reference that keeps the gate alive. Called with ExitDrain's lock held.
  [[nodiscard]] virtual Ref<Event> reference() noexcept = 0;
  // Fails the commands that wait for the gate, or allows them to run if the driver cannot fail
  // them.
  virtual void end_unopened() noexcept = 0;

 protected:
  ~DrainedGate() = default;
};

struct NativeQueue {
  const Api& calls;
  QueueHandle handle;
};

// An object that holds a queue of the driver. Its functions are called with ExitDrain's lock held.
class DrainedQueue : public DrainedAtExit {
 public:
  // Whether the queue is known to have no pending work. Must not query the driver.
  [[nodiscard]] virtual bool is_known_idle() noexcept = 0;
  [[nodiscard]] virtual NativeQueue native_queue() const noexcept = 0;

 protected:
  ~DrainedQueue() = default;
};

// Never destroyed, since it must outlive every thread. Thread-safe; the lock is held for a few
// instructions.
class ExitDrain {
 public:
  static ExitDrain& instance() noexcept;

  // Pre: nothing can open the gate yet.
  void add(DrainedGate& gate) noexcept;
  void add(DrainedQueue& queue) noexcept;
  // Adds a queue that is drained after those of `add`.
  void add_delayed(DrainedQueue& queue) noexcept;
  // Called at the latest in the body of the destructor of the member's own class, since `run` calls
  // virtual functions of members. Does nothing if the member is in no list, and in a forked child.
  void remove(DrainedAtExit& member) noexcept;

  void run() noexcept;

 private:
  struct List : DrainedAtExit {};

  void append(List& target, DrainedAtExit& member) noexcept;
  static void unlink(DrainedAtExit& member) noexcept;
  [[nodiscard]] bool end_next_gate() noexcept;
  [[nodiscard]] bool drain_next(List& queues, os::Clock::time_point until) noexcept;

  std::mutex lock_;
  List gates_;
  List queues_;
  List delayed_queues_;
};

}  // namespace isthmus::opencl
