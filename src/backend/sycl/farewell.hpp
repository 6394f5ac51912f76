#pragma once
// What is done before SYCL is taken down, at the end of the process: Intel's CPU runtime dies there
// where commands are in flight. The queues that are known are let run empty, some seconds at most.

#include <mutex>
#include <vector>

namespace isthmus::sycl {

class queue;

// Outlives every thread.
class farewell {
 public:
  static farewell& only() noexcept;

  // Throws std::bad_alloc.
  void add(const queue& open);
  // Before it goes. Pre: this is no forked child.
  void remove(const queue& open) noexcept;

  void run() noexcept;

 private:
  std::mutex lock_;
  std::vector<const queue*> queues_;
};

}  // namespace isthmus::sycl
