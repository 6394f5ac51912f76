// SPDX-License-Identifier: Apache-2.0
#pragma once
// `std::mutex`, `std::recursive_mutex`, `std::shared_mutex` and `std::condition_variable` with
// annotations for clang's analysis (thread_safety.hpp), which those of libstdc++ lack. They cost
// the same as those.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "core/thread_safety.hpp"

namespace isthmus {

template <class StandardMutex>
class ISTHMUS_CAPABILITY("mutex") BasicMutex {
 public:
  void lock() ISTHMUS_ACQUIRE() { mutex_.lock(); }
  bool try_lock() ISTHMUS_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() noexcept ISTHMUS_RELEASE() { mutex_.unlock(); }
  // For code that runs under the lock where the analysis cannot see that.
  void assert_held() const noexcept ISTHMUS_ASSERT_CAPABILITY() {}

 private:
  friend class ConditionVariable;
  StandardMutex mutex_;
};

using Mutex = BasicMutex<std::mutex>;
using RecursiveMutex = BasicMutex<std::recursive_mutex>;

class ISTHMUS_CAPABILITY("shared mutex") SharedMutex {
 public:
  void lock() ISTHMUS_ACQUIRE() { mutex_.lock(); }
  void unlock() noexcept ISTHMUS_RELEASE() { mutex_.unlock(); }
  void lock_shared() ISTHMUS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() noexcept ISTHMUS_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Waits take the mutex, which the caller holds, instead of a lock object. They may return early:
// call them in a loop that checks the condition.
class ConditionVariable {
 public:
  void wait(Mutex& mutex) ISTHMUS_REQUIRES(mutex) {
    std::unique_lock hold{mutex.mutex_, std::adopt_lock};
    changed_.wait(hold);
    hold.release();
  }
  // Whether it returned before `until`.
  template <class Clock, class Duration>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& until)
      ISTHMUS_REQUIRES(mutex) {
    std::unique_lock hold{mutex.mutex_, std::adopt_lock};
    const auto status = changed_.wait_until(hold, until);
    hold.release();
    return status == std::cv_status::no_timeout;
  }
  // The same; waits indefinitely if `until` is empty, and then returns true.
  template <class TimePoint>
  bool wait_until(Mutex& mutex, const std::optional<TimePoint>& until) ISTHMUS_REQUIRES(mutex) {
    if (until) {
      return wait_until(mutex, *until);
    }
    wait(mutex);
    return true;
  }
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace isthmus
