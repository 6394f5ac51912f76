// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/spin_lock.hpp"

namespace isthmus {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

template <class Lock>
class locks : public testing::Test {};
using LockTypes = testing::Types<Mutex, RecursiveMutex, SharedMutex, SpinLock>;
TYPED_TEST_SUITE(locks, LockTypes);

TYPED_TEST(locks, one_thread_at_a_time_is_inside) {
  constexpr int k_rounds = 2000;
  TypeParam lock;
  int count = 0;
  std::vector<std::jthread> threads(4);
  for (auto& each : threads) {
    each = std::jthread{[&] {
      for (int round = 0; round < k_rounds; ++round) {
        const LockGuard hold{lock};
        ++count;
      }
    }};
  }
  threads.clear();
  EXPECT_EQ(count, 4 * k_rounds);
}

TYPED_TEST(locks, a_unique_lock_is_released_for_a_while) {
  TypeParam lock;
  UniqueLock hold{lock};
  hold.unlock();
  { const LockGuard other{lock}; }
  hold.lock();
}

TYPED_TEST(locks, a_unique_lock_may_end_unlocked) {
  TypeParam lock;
  {
    UniqueLock hold{lock};
    hold.unlock();
  }
  const LockGuard hold{lock};
}

// Whether another thread could acquire the lock now.
template <class Lock>
bool is_free(Lock& lock) {
  bool acquired = false;
  std::jthread{[&] {
    if (lock.try_lock()) {
      acquired = true;
      lock.unlock();
    }
  }}.join();
  return acquired;
}

TEST(mutex, a_guard_adopts_a_lock_that_is_held) {
  Mutex lock;
  lock.lock();
  {
    const LockGuard hold{lock, std::adopt_lock};
    EXPECT_FALSE(is_free(lock));
  }
  EXPECT_TRUE(is_free(lock));
}

TEST(recursive_mutex, its_thread_acquires_it_again) {
  RecursiveMutex lock;
  const auto acquire_again = [&]() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
    const LockGuard again{lock};
    EXPECT_FALSE(is_free(lock));
  };
  {
    const LockGuard hold{lock};
    acquire_again();
    EXPECT_FALSE(is_free(lock));
  }
  EXPECT_TRUE(is_free(lock));
}

TEST(shared_mutex, readers_hold_it_together) {
  SharedMutex lock;
  const SharedLockGuard first{lock};
  std::jthread{[&] { const SharedLockGuard second{lock}; }}.join();
}

TEST(condition_variable, a_wait_ends_at_its_deadline) {
  Mutex lock;
  ConditionVariable changed;
  const LockGuard hold{lock};
  const auto until = Clock::now() + 2ms;
  while (changed.wait_until(lock, until)) {  // a spurious wakeup
  }
  EXPECT_GE(Clock::now(), until);
}

TEST(condition_variable, a_wait_without_a_deadline_ends_by_a_notification) {
  Mutex lock;
  ConditionVariable changed;
  bool is_set = false;
  const std::jthread notifier{[&] {
    const LockGuard hold{lock};
    is_set = true;
    changed.notify_all();
  }};
  const LockGuard hold{lock};
  while (!is_set) {
    EXPECT_TRUE(changed.wait_until(lock, std::optional<Clock::time_point>{}));
  }
}

#if ISTHMUS_DEBUG >= 1
TEST(spin_lock, an_assertion_that_it_is_held_fails_otherwise) {
  SpinLock lock;
  {
    const LockGuard hold{lock};
    lock.assert_held();
  }
  EXPECT_DEATH(lock.assert_held(), "precondition failed");
}
#endif

}  // namespace
}  // namespace isthmus
