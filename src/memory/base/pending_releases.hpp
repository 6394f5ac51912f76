// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts a pool's blocks that are pending release by a library thread, and the pool's failed waits
// for them. Thread-safe. The fields are not updated together, so their values may belong to
// different waits; they only decide whether and how long to wait.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace isthmus {

struct PendingReleases {
  static constexpr int k_max_failed_waits = 4;

  std::atomic<std::int64_t> bytes{0};
  // The failed waits less the successful ones; from 0 to `k_max_failed_waits`.
  std::atomic<int> failed_waits{0};

  // Whether a wait is worthwhile: more memory was released since the last failed wait, or the pool
  // holds at least twice as much as then.
  [[nodiscard]] bool is_wait_worthwhile(std::uint64_t releases, std::size_t held) const noexcept {
    return releases != releases_.load(std::memory_order_relaxed) ||
           held >= 2 * held_.load(std::memory_order_relaxed);
  }
  void note_failed_wait(std::uint64_t releases, std::size_t held) noexcept {
    releases_.store(releases, std::memory_order_relaxed);
    held_.store(held, std::memory_order_relaxed);
    const auto waits = failed_waits.load(std::memory_order_relaxed);
    failed_waits.store(std::min(waits + 1, k_max_failed_waits), std::memory_order_relaxed);
  }

  void note_served() noexcept {
    const auto waits = failed_waits.load(std::memory_order_relaxed);
    failed_waits.store(std::max(waits - 1, 0), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> releases_{UINT64_MAX};
  std::atomic<std::size_t> held_{0};
};

}  // namespace isthmus
