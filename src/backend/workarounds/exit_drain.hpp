// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains queues at process exit, before Intel's CPU runtime is unloaded. Otherwise the runtime
// hangs if queues with unfinished work wait for one another, and crashes if commands are in flight.
// OpenCL and SYCL, which may run on that runtime, register their queues. Thread-safe.
//
// First fails the gates that never opened, and thus all work that waits for them. Then submits a
// barrier to each queue, and waits for the barriers, for at most 5 seconds in total.

#include <vector>

#include "backend/event.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "os/futex.hpp"

namespace isthmus {

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

// An event of the driver that waits for the program, until it is set.
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

// A reference to a queue of the driver. It is never released: the process is exiting.
struct NativeQueue {
  // Functions of the driver, whose table of functions is `api`.
  struct Calls {
    // Returns the barrier's event; null if the driver refuses.
    void* (*submit_barrier)(const void* api, void* queue) noexcept;
    bool (*is_running)(const void* api, void* barrier) noexcept;
  };
  const Calls* calls = nullptr;
  const void* api = nullptr;
  void* queue = nullptr;  // null if the driver refused the reference
};

// An object that holds a queue of the driver. Its functions are called with ExitDrain's lock held.
class DrainedQueue : public DrainedAtExit {
 public:
  // Whether the queue is known to have no pending work. Must not query the driver.
  [[nodiscard]] virtual bool is_known_idle() noexcept = 0;
  // Returns another reference to the driver's queue, since this object may be destroyed once the
  // lock is released.
  [[nodiscard]] virtual NativeQueue retain_native() noexcept = 0;

 protected:
  ~DrainedQueue() = default;
};

// Never destroyed, since it must outlive every thread. The lock is held for a few instructions, and
// while a queue is retained.
class ExitDrain {
 public:
  static ExitDrain& instance() noexcept;

  // Called before anything can open the gate.
  void add(DrainedGate& gate) noexcept;
  void add(DrainedQueue& queue) noexcept;
  // Adds a queue that is drained after those of `add`.
  void add_delayed(DrainedQueue& queue) noexcept;
  // Called at the latest in the body of the destructor of the member's own class, since `run` calls
  // virtual functions of members. Does nothing if the member is in no list, and in a forked child.
  void remove(DrainedAtExit& member) noexcept;

  // Called once, at exit.
  void run() noexcept;

 private:
  struct List : DrainedAtExit {};
  struct Barrier {
    NativeQueue queue;
    void* event;
  };

  void append(List& target, DrainedAtExit& member) noexcept;
  void unlink(DrainedAtExit& member) noexcept ISTHMUS_REQUIRES(lock_);
  // Remove the first member of a list. Return false if the list is empty.
  [[nodiscard]] bool end_next_gate() noexcept;
  [[nodiscard]] bool submit_next_barrier(List& queues, std::vector<Barrier>& barriers,
                                         os::Clock::time_point until) noexcept;

  Mutex lock_;
  List gates_;  // the links of the members of all lists are accessed under the lock
  List queues_;
  List delayed_queues_;
};

}  // namespace isthmus
