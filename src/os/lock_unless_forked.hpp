// SPDX-License-Identifier: Apache-2.0
#pragma once
// `LockGuard` for functions that also work in a forked child.

#include "core/thread_safety.hpp"
#include "os/process.hpp"

namespace isthmus::os {

// Holds a lock during its lifetime, except in a forked child: it has no other threads, and a thread
// of the parent may have held the lock. For the analysis the lock is held in both cases.
template <class Lock>
class ISTHMUS_SCOPED_CAPABILITY LockUnlessForked {
 public:
  explicit LockUnlessForked(Lock& lock) ISTHMUS_ACQUIRE(lock)
      : lock_{is_forked_child() ? nullptr : &lock} {
    if (lock_ != nullptr) {
      lock_->lock();
    }
  }
  LockUnlessForked(const LockUnlessForked&) = delete;
  LockUnlessForked& operator=(const LockUnlessForked&) = delete;
  ~LockUnlessForked() ISTHMUS_RELEASE() {
    if (lock_ != nullptr) {
      lock_->unlock();
    }
  }

 private:
  Lock* const lock_;
};

}  // namespace isthmus::os
