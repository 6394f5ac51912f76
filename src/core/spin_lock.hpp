// SPDX-License-Identifier: Apache-2.0
#pragma once
// A spin lock for critical sections of a few instructions. Never held during a driver call or a
// wait.

#include <atomic>
#include <thread>

namespace isthmus {

class SpinLock {
 public:
  void lock() noexcept {
    for (int spins = 0; flag_.exchange(true, std::memory_order_acquire);) {
      while (flag_.load(std::memory_order_relaxed)) {
        // The thread that holds the lock may be waiting for this core, so yield.
        if (++spins > k_spins_before_yield) {
          std::this_thread::yield();
        }
      }
    }
  }
  bool try_lock() noexcept { return !flag_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  static constexpr int k_spins_before_yield = 64;
  std::atomic<bool> flag_{false};
};

}  // namespace isthmus
