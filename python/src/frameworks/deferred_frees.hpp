// SPDX-License-Identifier: Apache-2.0
#pragma once
// Frees that have to be deferred, because the block is used on a stream that is being captured into
// a graph and cannot report its work now (stream_uses.hpp). They are retried by later allocations
// and frees. Thread-safe; needs no interpreter.

#include <isthmus/error.hpp>

#include <atomic>
#include <cstddef>

namespace isthmus::python {

struct FreedBlock {
  isthmus_resource_t* resource;
  isthmus_queue_t* queue;
  void* pointer;
  std::size_t nbytes;
};

class DeferredFrees {
 public:
  // Frees the block, or defers it. Throws isthmus::error if the resource rejects it, and
  // std::bad_alloc without memory for the list; the block is leaked then.
  static void free(const FreedBlock& block);
  // Retries one deferred free: a capture may last for many calls, and each should cost little.
  static void retry_one() noexcept {
    if (count().load(std::memory_order_relaxed) != 0) [[unlikely]] {
      retry(1);
    }
  }
  // Retries all deferred frees. Returns whether there were any.
  static bool retry_all() noexcept {
    const auto waiting = count().load(std::memory_order_relaxed);
    retry(waiting);
    return waiting != 0;
  }

 private:
  // Length of the list, as a hint: zero avoids locking the mutex. The mutex orders all other
  // accesses, so relaxed order suffices.
  static std::atomic<std::size_t>& count() noexcept {
    static constinit std::atomic<std::size_t> waiting{0};
    return waiting;
  }
  static void retry(std::size_t max) noexcept;
};

}  // namespace isthmus::python
