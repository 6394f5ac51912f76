// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queues of the per-thread default stream. A thread has one such queue for each device, from
// the thread's first request until its end. Holders of a reference may use the queue afterwards too
// (queue.hpp).

#include <cstdint>
#include <vector>

#include "backend/queue.hpp"

namespace isthmus::cuda {

// The queues of one thread, used by that thread only.
class ThreadQueues {
 public:
  // Those of the calling thread. CLOSED if the thread is ending; the message names `device`.
  [[nodiscard]] static Result<ThreadQueues*> current(const isthmus::Device& device);
  ThreadQueues() noexcept;

  // The number of the thread. Unlike the system's thread ids, it is never reused. Never 0.
  [[nodiscard]] std::uint64_t thread() const noexcept { return thread_; }
  // Null if the thread has no queue for the device, or that queue was closed.
  [[nodiscard]] Ref<isthmus::Queue> find_open(const isthmus::Device& device) const noexcept;
  // Adds a queue, or replaces the closed one for the same device.
  void put(Ref<isthmus::Queue> queue);

 private:
  const std::uint64_t thread_;
  std::vector<Ref<isthmus::Queue>> queues_;
};

// `ThreadQueues::thread` of the calling thread. 0 if the thread has no such queues, or they have
// been destroyed.
[[nodiscard]] std::uint64_t current_thread_id() noexcept;

}  // namespace isthmus::cuda
