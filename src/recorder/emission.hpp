// SPDX-License-Identifier: Apache-2.0
#pragma once
// Marks the threads that are calling observers, so that the removal of an observer can wait for the
// calls in progress, and so that an observer that causes events itself is not called recursively.
// Thread-safe.
//
// A thread with a number (core/thread_number.hpp) marks itself with plain stores to a cache line of
// its own; the removing thread pays for the memory fences of both (os/process_fence.hpp). Threads
// without a number call observers one at a time.

#include <atomic>
#include <cstdint>

namespace isthmus {

// Exists while the calling thread calls observers. Converts to false if observers must not be
// called: the thread is calling one already, or the process is a forked child.
class Emission {
 public:
  Emission() noexcept;
  ~Emission();
  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return allowed_; }

 private:
  const bool allowed_;
  // The thread's own mark, which is odd during an emission. Null: the lock is held instead.
  std::atomic<std::uint32_t>* mark_ = nullptr;
};

// Call this before the first `Emission`; repeated calls are allowed, but not
// concurrent ones.
void prepare_emissions() noexcept;
// Returns once every `Emission` that may have begun before the call has ended. One that begins
// later reads, with `memory_order_seq_cst`, what this thread stored in that order before the call.
// Not called during an `Emission` of the same thread, nor in a forked child, which has no other
// threads.
void wait_for_emissions() noexcept;

}  // namespace isthmus
