// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counters of the driver memory that a resource holds, and of its mappings and unmappings.
// Thread-safe; the counters are independent, so relaxed atomics suffice.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {

class DriverCounts {
 public:
  void record_allocation(std::size_t nbytes) noexcept {
    held_.fetch_add(nbytes, std::memory_order_relaxed);
    mapped();
  }
  void record_release(std::size_t nbytes) noexcept {
    held_.fetch_sub(nbytes, std::memory_order_relaxed);
    unmapped();
  }
  void record_move() noexcept {
    mapped();
    unmapped();
  }

  // Reserves bytes before the driver is called, so that concurrent callers together stay within
  // `limit`. Returns false if they would exceed it.
  [[nodiscard]] bool claim(std::size_t nbytes, std::size_t limit) noexcept {
    auto held = held_bytes();
    do {
      if (nbytes > limit || held > limit - nbytes) {
        return false;
      }
    } while (!held_.compare_exchange_weak(held, held + nbytes, std::memory_order_relaxed));
    return true;
  }
  void record_claimed_allocation() noexcept { mapped(); }
  void unclaim(std::size_t nbytes) noexcept { held_.fetch_sub(nbytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t maps() const noexcept {
    return maps_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t unmaps() const noexcept {
    return unmaps_.load(std::memory_order_relaxed);
  }

 private:
  void mapped() noexcept { maps_.fetch_add(1, std::memory_order_relaxed); }
  void unmapped() noexcept { unmaps_.fetch_add(1, std::memory_order_relaxed); }

  std::atomic<std::size_t> held_{0};
  std::atomic<std::uint64_t> maps_{0};
  std::atomic<std::uint64_t> unmaps_{0};
};

}  // namespace isthmus
