// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queues of the per-thread default stream. A thread has one such queue for each device, from
// the thread's first request until its end. Holders of a reference may use the queue afterwards too
// (queue.hpp).

#include "backend/cuda/context.hpp"
#include "backend/queue.hpp"

namespace isthmus::cuda {

// The number of the calling thread. Unlike the system's thread ids, it is never reused. 0 if the
// thread has no such queues, or they have been destroyed.
[[nodiscard]] std::uint64_t current_thread_id() noexcept;
// The calling thread's queue for the device, always the same one until it is closed. CLOSED if the
// thread is ending.
[[nodiscard]] Result<Ref<isthmus::Queue>> current_thread_queue(Context& context, Device& device);

}  // namespace isthmus::cuda
