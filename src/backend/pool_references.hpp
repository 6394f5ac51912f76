// SPDX-License-Identifier: Apache-2.0
#pragma once
// The references to a queue that pools hold. Thread-safe.
//
// Each pool that uses a queue holds a reference that does not count as a use. Once only pools refer
// to the queue, no other code can obtain it again, and the pools may forget it.

#include <cstdint>

#include "core/lock_guard.hpp"
#include "core/ref.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class PoolReferences {
 public:
  // A member of `object`.
  explicit PoolReferences(RefCounted& object) noexcept : object_{object} {}

  // A pool acquires its reference before `add`, and releases it after `remove`.
  void add() noexcept {
    const LockGuard hold{lock_};
    ++count_;
  }
  void remove() noexcept {
    const LockGuard hold{lock_};
    --count_;
  }
  // Whether only pools refer to the object.
  [[nodiscard]] bool are_all() noexcept {
    const LockGuard hold{lock_};
    return object_.references() <= count_;
  }
  // Retains the object, to which the caller holds no reference. Returns false if only pools refer
  // to it. The caller must hold a lock that the object's destruction acquires too.
  [[nodiscard]] bool retain_unless_all() noexcept {
    const LockGuard hold{lock_};
    return object_.references() > count_ && object_.try_retain();
  }

 private:
  RefCounted& object_;
  SpinLock lock_;
  std::uint32_t count_ ISTHMUS_GUARDED_BY(lock_) = 0;
};

}  // namespace isthmus
