#pragma once
// CUDA's events that nobody uses now: making and destroying one for each operation takes as long as
// the rest of a small copy where several threads do it at once (H100: pieces of 256 KiB through
// pinned memory on eight threads took 22 us each, and 15 us with events that were there).

#include <array>
#include <cstddef>
#include <mutex>

#include "backend/cuda/api.hpp"
#include "core/spin_lock.hpp"

namespace isthmus::cuda {

// Safe for threads. One that somebody still waits for may be kept: recording it anew changes what
// later waits mean, not those that were submitted.
class event_cache {
 public:
  // Null: there is none.
  [[nodiscard]] event_handle take() noexcept {
    const std::lock_guard hold{lock_};
    return count_ != 0 ? spare_[--count_] : nullptr;
  }
  // False: there is no room for it.
  [[nodiscard]] bool keep(event_handle unused) noexcept {
    const std::lock_guard hold{lock_};
    if (count_ == spare_.size()) {
      return false;
    }
    spare_[count_++] = unused;
    return true;
  }

 private:
  spin_lock lock_;
  std::size_t count_ = 0;
  std::array<event_handle, 256> spare_{};
};

}  // namespace isthmus::cuda
