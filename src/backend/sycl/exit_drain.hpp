// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains all registered queues at process exit, before SYCL is unloaded, for at most 5 seconds.
// Intel's CPU runtime crashes if commands are in flight at that time.

#include <list>
#include <mutex>

namespace isthmus::sycl {

class HeldQueue;

// Thread-safe. Never destroyed, since it must outlive every thread.
class ExitDrain {
 public:
  static ExitDrain& instance() noexcept;

  using Place = std::list<const HeldQueue*>::iterator;

  // Throws std::bad_alloc.
  [[nodiscard]] Place add(const HeldQueue& queue);
  // Called before the queue is destroyed. Pre: not in a forked child.
  void remove(Place position) noexcept;

  // Called once, at exit.
  void run() noexcept;

 private:
  std::mutex lock_;
  std::list<const HeldQueue*> queues_;
};

}  // namespace isthmus::sycl
