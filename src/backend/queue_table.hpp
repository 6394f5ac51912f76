// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queues of a driver's handles: a handle may be adopted more than once but has a single queue.

#include <mutex>
#include <unordered_map>

#include "backend/queue.hpp"

namespace isthmus {

// Thread-safe. Holds no references.
template <class Handle>
class queue_table {
 public:
  // Replaces a queue that only pools refer to. Throws std::bad_alloc, and then nothing was done.
  void add(Handle handle, queue& of) {
    const std::lock_guard hold{lock_};
    queues_.insert_or_assign(handle, &of);
  }
  // Called before the driver may reuse the handle, and before `of` is destroyed.
  void remove(Handle handle, const queue& of) noexcept {
    const std::lock_guard hold{lock_};
    const auto found = queues_.find(handle);
    if (found != queues_.end() && found->second == &of) {
      queues_.erase(found);
    }
  }
  [[nodiscard]] bool has(Handle handle) noexcept {
    const std::lock_guard hold{lock_};
    return queues_.contains(handle);
  }
  // Null if the handle has no queue, or only pools refer to it.
  [[nodiscard]] ref<queue> find(Handle handle) noexcept {
    const std::lock_guard hold{lock_};
    const auto found = queues_.find(handle);
    const bool is_known = found != queues_.end() && found->second->retain_if_known();
    return is_known ? ref<queue>::adopt(found->second) : ref<queue>{};
  }

 private:
  std::mutex lock_;
  std::unordered_map<Handle, queue*> queues_;
};

}  // namespace isthmus
