// SPDX-License-Identifier: Apache-2.0
#pragma once
// Queues that library threads may query only while a thread of the program is in a call of the
// library: the out-of-order queues of Intel's OpenCL runtime for CPUs, through OpenCL or SYCL.
// Thread-safe.
//
// That runtime (2024.2 to 2026.2) crashes if one thread waits for an out-of-order queue while
// another submits to it, and a query submits a barrier. While a single-threaded program waits for
// its queue, library threads must therefore not use that queue. Memory that was freed on such a
// queue is released in a later call (memory/base/library_call.hpp).

#include <atomic>

namespace isthmus {
namespace detail {

inline std::atomic<bool> has_queues_queried_on_demand{false};

}  // namespace detail

// Called by the constructor of such a queue.
inline void note_queue_queried_on_demand() noexcept {
  detail::has_queues_queried_on_demand.store(true, std::memory_order_relaxed);
}

// Whether the process has created such a queue so far. Costs one load. True for every thread that
// has access to one: whatever published the queue to the thread published the flag too.
[[nodiscard]] inline bool has_queues_queried_on_demand() noexcept {
  return detail::has_queues_queried_on_demand.load(std::memory_order_relaxed);
}

}  // namespace isthmus
