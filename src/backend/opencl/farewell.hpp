// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains queues at the end of the process, before Intel's CPU runtime is torn down. The runtime
// hangs if queues in flight wait for one another, and crashes if an out-of-order queue has commands
// in flight. So unfinished work is ended here: first the gates that never opened are failed, with
// everything that waits for them, then the queues run empty, for 5 seconds at most.

#include <mutex>

#include "os/futex.hpp"

namespace isthmus::opencl {

class gate;
class lingering_queue;
class queue;

// An entry of one of the lists below while its owner is in use.
class in_farewell {
 public:
  in_farewell() = default;
  in_farewell(const in_farewell&) = delete;
  in_farewell& operator=(const in_farewell&) = delete;

 protected:
  ~in_farewell() = default;

 private:
  friend class farewell;
  in_farewell* previous_ = this;
  in_farewell* next_ = this;
};

// Never destroyed, since it outlives every thread. Thread-safe; the lock is held for a few
// instructions.
class farewell {
 public:
  static farewell& only() noexcept;

  // Pre: nothing can open the gate yet.
  void add(gate& closed) noexcept;
  void add(queue& open) noexcept;
  void add(lingering_queue& open) noexcept;
  // Call this before the member is destroyed. Does nothing if it is not in a list, and in a forked
  // child.
  void remove(in_farewell& member) noexcept;

  void run() noexcept;

 private:
  struct list : in_farewell {};

  void append(list& to, in_farewell& member) noexcept;
  static void unlink(in_farewell& member) noexcept;
  [[nodiscard]] bool end_a_gate() noexcept;
  template <class Queue>
  [[nodiscard]] bool await_one_of(list& queues, os::clock::time_point until) noexcept;

  std::mutex lock_;
  list gates_;
  list queues_;
  list lingering_;
};

}  // namespace isthmus::opencl
