#pragma once
// The queues that belong to a driver's handles: a handle may come in more than once, and is to have
// one queue.

#include <mutex>
#include <unordered_map>

#include "backend/queue.hpp"

namespace isthmus {

// Safe for threads.
template <class Handle>
class queue_table {
 public:
  // In place of a queue that nobody but pools knows. Throws std::bad_alloc, and then nothing is
  // done.
  void add(Handle handle, queue& of) {
    const std::lock_guard hold{lock_};
    queues_.insert_or_assign(handle, &of);
  }
  // Before the driver may give the handle to another, and before `of` ends.
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
  // Null if it has none, or nobody but pools knows its queue any more.
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
