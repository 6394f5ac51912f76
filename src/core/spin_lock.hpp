// SPDX-License-Identifier: Apache-2.0
#pragma once
// A spin lock for critical sections of a few instructions. Never held during a driver call or a
// wait.

#include <atomic>
#include <thread>

#include "core/expects.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class ISTHMUS_CAPABILITY("spin lock") SpinLock {
 public:
  void lock() noexcept ISTHMUS_ACQUIRE() {
    for (int spins = 0; flag_.exchange(true, std::memory_order_acquire);) {
      while (flag_.load(std::memory_order_relaxed)) {
        // The thread that holds the lock may be waiting for this core, so yield.
        if (++spins > k_spins_before_yield) {
          std::this_thread::yield();
        }
      }
    }
  }
  bool try_lock() noexcept ISTHMUS_TRY_ACQUIRE(true) {
    return !flag_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept ISTHMUS_RELEASE() { flag_.store(false, std::memory_order_release); }
  // For code that runs under the lock where the analysis cannot see that.
  void assert_held() const noexcept ISTHMUS_ASSERT_CAPABILITY() {
    ISTHMUS_EXPECTS(flag_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr int k_spins_before_yield = 64;
  std::atomic<bool> flag_{false};
};

}  // namespace isthmus
