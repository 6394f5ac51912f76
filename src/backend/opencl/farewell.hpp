#pragma once
// What is done before Intel's CPU runtime is taken down, at the end of the process. It hangs there
// where queues in flight wait for one another, and crashes where an out-of-order one has commands
// in flight. So what nobody waited for is: first the gates that never opened are ended, with
// whatever stands behind them, then the queues are let run empty, some seconds at most.

#include <mutex>

#include "os/futex.hpp"

namespace isthmus::opencl {

class gate;
class lingering_queue;
class queue;

// Stands in one of the lists below while its owner is in use.
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

// Outlives every thread. The lock is held for a few instructions.
class farewell {
 public:
  static farewell& only() noexcept;

  // Before anything can open it.
  void add(gate& closed) noexcept;
  void add(queue& open) noexcept;
  void add(lingering_queue& open) noexcept;
  // Before it goes. Does nothing where it does not stand in a list, and in a forked child.
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
