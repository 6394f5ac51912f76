// SPDX-License-Identifier: Apache-2.0
#pragma once
// The turns of the threads that grow or trim a pool: one thread at a time calls the driver, so that
// each first tries the memory that the previous thread added.
//
// Threads that call an upstream resource in place of the driver do not wait for one another:
// upstream may be code of the program that waits for another of these threads. They are only
// counted, so that a request that fails can wait for their return.

#include <atomic>
#include <cstdint>

#include "core/mutex.hpp"
#include "core/status.hpp"
#include "os/futex.hpp"

namespace isthmus {

// Thread-safe.
class GrowthTurns {
 public:
  explicit GrowthTurns(bool has_upstream) noexcept : has_upstream_{has_upstream} {}

  // Held during calls of the driver. Taken before the lock of the region heap. With an upstream
  // resource it excludes no thread.
  class Turn {
   public:
    explicit Turn(GrowthTurns& turns) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Call before adding memory from which this thread will allocate a run: until the turn ends, no
    // whole region is released.
    void begin_adding() noexcept;

   private:
    GrowthTurns& turns_;
    bool adds_memory_ = false;
  };

  // Whether a turn that has added memory is not over. Read under the lock of the region heap, since
  // the memory is added under that lock.
  [[nodiscard]] bool is_adding() const noexcept {
    return adding_.load(std::memory_order_relaxed) != 0;
  }
  // The number of threads that are calling the upstream resource.
  [[nodiscard]] std::uint32_t at_upstream() const noexcept {
    return at_upstream_.load(std::memory_order_acquire);
  }
  // `wait_for_upstream` waits until another thread has returned from a call of the upstream
  // resource since `begin_upstream_wait` returned `seen` on this thread. False if no thread is in
  // such a call, or at the deadline `until`. CALLBACK if the thread's interrupt function ended the
  // wait.
  [[nodiscard]] std::uint32_t begin_upstream_wait() const noexcept;
  [[nodiscard]] Result<bool> wait_for_upstream(std::uint32_t seen, const os::Deadline& until) const;

 private:
  const bool has_upstream_;
  Mutex growing_;                                   // held by a turn without upstream
  std::atomic<std::uint32_t> adding_{0};            // turns that added memory
  std::atomic<std::uint32_t> at_upstream_{0};       // turns with upstream
  std::atomic<std::uint32_t> upstream_returns_{0};  // of these, those that have ended
};

}  // namespace isthmus
