#pragma once
// What a pool knows of its blocks that a thread of the library is yet to give back, and of its own
// waiting for them. Safe for threads; what several find out at once may be one another's.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace isthmus {

struct late_memory {
  static constexpr int k_most_in_vain = 4;

  std::atomic<std::int64_t> bytes{0};
  std::atomic<int> waits_in_vain{0};  // more than were not

  // No more came back since the last wait in vain, and the pool holds less than twice as much.
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
