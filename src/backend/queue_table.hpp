// SPDX-License-Identifier: Apache-2.0
#pragma once
// Maps driver handles to queues: a handle may be adopted more than once but has a single queue
// object.

#include <unordered_map>

#include "backend/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// Thread-safe. Holds no references.
template <class Handle>
class QueueTable {
 public:
  // Adds a queue, or replaces one that only pools refer to. Throws std::bad_alloc without any
  // effect.
  void add(Handle handle, Queue& queue) {
    const LockGuard hold{lock_};
    queues_.insert_or_assign(handle, &queue);
  }
  // Called before the driver may reuse the handle, and before `queue` is destroyed.
  void remove(Handle handle, const Queue& queue) noexcept {
    const LockGuard hold{lock_};
    const auto found = queues_.find(handle);
    if (found != queues_.end() && found->second == &queue) {
      queues_.erase(found);
    }
  }
  [[nodiscard]] bool has(Handle handle) noexcept {
    const LockGuard hold{lock_};
    return queues_.contains(handle);
  }
  // Null if the handle has no queue, or only pools refer to it.
  [[nodiscard]] Ref<Queue> find(Handle handle) noexcept {
    const LockGuard hold{lock_};
    const auto found = queues_.find(handle);
    const bool is_retained =
        found != queues_.end() && found->second->pool_references().retain_unless_all();
    return is_retained ? Ref<Queue>::adopt(found->second) : Ref<Queue>{};
  }

 private:
  Mutex lock_;
  std::unordered_map<Handle, Queue*> queues_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
