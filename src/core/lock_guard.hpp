// SPDX-License-Identifier: Apache-2.0
#pragma once
// `std::lock_guard`, `std::shared_lock` and `std::unique_lock` in a form that clang's analysis
// understands (thread_safety.hpp). They compile to the same code as those of the standard library.

#include <mutex>

#include "core/expects.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// Holds a lock during its lifetime.
template <class Lock>
class ISTHMUS_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) ISTHMUS_ACQUIRE(lock) : lock_{lock} { lock.lock(); }
  // Takes over a lock that the caller holds.
  LockGuard(Lock& lock, std::adopt_lock_t) noexcept ISTHMUS_REQUIRES(lock) : lock_{lock} {}
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() ISTHMUS_RELEASE() { lock_.unlock(); }

 private:
  Lock& lock_;
};

// Holds a lock together with other threads that hold it in this way.
template <class Lock>
class ISTHMUS_SCOPED_CAPABILITY SharedLockGuard {
 public:
  explicit SharedLockGuard(Lock& lock) ISTHMUS_ACQUIRE_SHARED(lock) : lock_{lock} {
    lock.lock_shared();
  }
  SharedLockGuard(const SharedLockGuard&) = delete;
  SharedLockGuard& operator=(const SharedLockGuard&) = delete;
  ~SharedLockGuard() ISTHMUS_RELEASE() { lock_.unlock_shared(); }

 private:
  Lock& lock_;
};

// As `LockGuard`, for a lock that is released for a while meanwhile.
template <class Lock>
class ISTHMUS_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Lock& lock) ISTHMUS_ACQUIRE(lock) : lock_{lock} { this->lock(); }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;
  ~UniqueLock() ISTHMUS_RELEASE() {
    if (is_held_) {
      lock_.unlock();
    }
  }

  void lock() ISTHMUS_ACQUIRE() {
    ISTHMUS_EXPECTS(!is_held_);
    lock_.lock();
    is_held_ = true;
  }
  void unlock() noexcept ISTHMUS_RELEASE() {
    ISTHMUS_EXPECTS(is_held_);
    is_held_ = false;
    lock_.unlock();
  }

 private:
  Lock& lock_;
  bool is_held_ = false;
};

}  // namespace isthmus
