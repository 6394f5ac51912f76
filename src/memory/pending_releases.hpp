// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a pool knows about its blocks that are pending release by a library thread, and about the
// success of its waits for them. Thread-safe. The fields are not updated together, so one may
// belong to another thread's wait; they only decide whether and how long to wait.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace isthmus {

struct PendingReleases {
  static constexpr int k_most_in_vain = 4;

  std::atomic<std::int64_t> bytes{0};
  // In excess of the waits that succeeded; at most `k_most_in_vain`.
  std::atomic<int> waits_in_vain{0};

  // Whether a wait is worthwhile: more memory was released since the last wait in vain, or the pool
  // holds at least twice as much as then.
  [[nodiscard]] bool is_worth_a_wait(std::uint64_t reclaims, std::size_t held) const noexcept {
    return reclaims != reclaims_.load(std::memory_order_relaxed) ||
           held >= 2 * held_.load(std::memory_order_relaxed);
  }
  void note_in_vain(std::uint64_t reclaims, std::size_t held) noexcept {
    reclaims_.store(reclaims, std::memory_order_relaxed);
    held_.store(held, std::memory_order_relaxed);
    const auto waits = waits_in_vain.load(std::memory_order_relaxed);
    waits_in_vain.store(std::min(waits + 1, k_most_in_vain), std::memory_order_relaxed);
  }

  void note_served() noexcept {
    const auto waits = waits_in_vain.load(std::memory_order_relaxed);
    waits_in_vain.store(std::max(waits - 1, 0), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> reclaims_{UINT64_MAX};
  std::atomic<std::size_t> held_{0};
};

}  // namespace isthmus
