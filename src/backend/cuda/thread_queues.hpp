#pragma once
// The queues of the per-thread default stream: a thread has one for each device, from when it first
// asks for it to its own end. Whoever holds it still may use it then (queue.hpp).

#include "backend/cuda/context.hpp"
#include "backend/queue.hpp"

namespace isthmus::cuda {

// Of the calling thread alone, and never used again, unlike what the system has. 0: it has no such
// queue, or none any more.
[[nodiscard]] std::uint64_t own_thread() noexcept;
// The calling thread's, always the same. CLOSED where the thread is ending.
[[nodiscard]] result<ref<isthmus::queue>> own_thread_queue(context& home, device& where);

}  // namespace isthmus::cuda
