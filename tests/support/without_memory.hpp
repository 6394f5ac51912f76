// Has allocations of this thread fail, where a file of the program includes no_memory.hpp.
#pragma once

namespace support {

// Allocations of this thread that are served before all fail; negative: none fails.
inline thread_local long allocations_left = -1;

[[nodiscard]] inline bool has_memory() noexcept {
  if (allocations_left > 0) --allocations_left;
  return allocations_left != 0;
}

// While it lives the thread that made it has memory for `served` allocations.
class without_memory {
 public:
  explicit without_memory(long served = 0) noexcept { allocations_left = served + 1; }
  without_memory(const without_memory&) = delete;
  without_memory& operator=(const without_memory&) = delete;
  ~without_memory() { allocations_left = -1; }

  [[nodiscard]] static bool failed() noexcept { return allocations_left == 0; }
};

}  // namespace support
