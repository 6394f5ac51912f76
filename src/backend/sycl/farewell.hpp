#pragma once
// What is done before SYCL is taken down, at the end of the process: Intel's CPU runtime dies there
// where commands are in flight. The queues that are known are let run empty, some seconds at most.

#include <list>
#include <mutex>

namespace isthmus::sycl {

class held_queue;

// Outlives every thread.
class farewell {
 public:
  static farewell& only() noexcept;

  using place = std::list<const held_queue*>::iterator;

  // Throws std::bad_alloc.
  [[nodiscard]] place add(const held_queue& open);
  // Before it goes. Pre: this is no forked child.
  void remove(place of) noexcept;

  void run() noexcept;

 private:
  std::mutex lock_;
  std::list<const held_queue*> queues_;
};

}  // namespace isthmus::sycl
