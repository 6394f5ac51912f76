// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains all registered queues at process exit, before SYCL is unloaded, for at most 5 seconds.
// Intel's CPU runtime crashes if commands are in flight at that time.

#include <list>
#include <mutex>
#include <utility>

#include "backend/sycl/reference.hpp"

namespace isthmus::sycl {

// Thread-safe. Never destroyed, since it must outlive every thread.
class ExitDrain {
 public:
  static ExitDrain& instance() noexcept;

  using Queues = std::list<std::pair<const Api*, QueueReference>>;
  using Position = Queues::iterator;

  // The caller's reference keeps the queue alive until `remove`. Throws std::bad_alloc.
  [[nodiscard]] Position add(const Api& calls, QueueReference queue);
  // Called before the queue is destroyed. Pre: not in a forked child.
  void remove(Position position) noexcept;

  // Called once, at exit.
  void run() noexcept;

 private:
  std::mutex lock_;
  Queues queues_;
};

}  // namespace isthmus::sycl
