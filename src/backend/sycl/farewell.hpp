// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains the known queues before SYCL is unloaded at exit, for some seconds at most: Intel's CPU
// runtime crashes if commands are in flight then.

#include <list>
#include <mutex>

namespace isthmus::sycl {

class held_queue;

// Thread-safe. Never destroyed, since it must outlive every thread.
class farewell {
 public:
  static farewell& only() noexcept;

  using place = std::list<const held_queue*>::iterator;

  // Throws std::bad_alloc.
  [[nodiscard]] place add(const held_queue& open);
  // Called before the queue is destroyed. Pre: not in a forked child.
  void remove(place of) noexcept;

  // Called once, at exit.
  void run() noexcept;

 private:
  std::mutex lock_;
  std::list<const held_queue*> queues_;
};

}  // namespace isthmus::sycl
