#pragma once
// The streams of one device that this library made, and the queues that they belong to: a handle
// that was lent may come back, and one stream is to have one queue.

#include <mutex>
#include <unordered_map>

#include "backend/cuda/api.hpp"
#include "backend/queue.hpp"

namespace isthmus::cuda {

// Safe for threads.
class own_streams {
 public:
  // Throws std::bad_alloc, and then nothing is done.
  void add(stream_handle handle, isthmus::queue& of) {
    const std::lock_guard hold{lock_};
    queues_.emplace(handle, &of);
  }
  // Before the stream is destroyed, and before `of` ends.
  void remove(stream_handle handle) noexcept {
    const std::lock_guard hold{lock_};
    queues_.erase(handle);
  }
  [[nodiscard]] bool has(stream_handle handle) noexcept {
    const std::lock_guard hold{lock_};
    return queues_.contains(handle);
  }
  // Null if it is none of ours, or nobody but pools knows its queue any more.
  [[nodiscard]] ref<isthmus::queue> find(stream_handle handle) noexcept {
    const std::lock_guard hold{lock_};
    const auto found = queues_.find(handle);
    const bool is_known = found != queues_.end() && found->second->retain_if_known();
    return is_known ? ref<isthmus::queue>::adopt(found->second) : ref<isthmus::queue>{};
  }

 private:
  std::mutex lock_;
  std::unordered_map<stream_handle, isthmus::queue*> queues_;
};

}  // namespace isthmus::cuda
