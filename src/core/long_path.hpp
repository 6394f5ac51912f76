// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reasons why the shortest paths of entry points must not be taken, in one word: these paths
// then read one word, however many reasons there are. Thread-safe.

#include <atomic>
#include <cstdint>

namespace isthmus {

enum class LongPathReason : std::uint32_t {
  forked_child = 1,  // nothing of the parent's devices may be used (os/process.hpp)
  observed = 2,      // allocations or frees are reported to observers (recorder/observers.hpp)
};

// Written by `set_long_path`, and read by `takes_long_path`.
inline constinit std::atomic<std::uint32_t> long_path_reasons{0};

// Whether any reason holds. The long path determines which.
[[nodiscard]] inline bool takes_long_path() noexcept {
  return long_path_reasons.load(std::memory_order_relaxed) != 0;
}
inline void set_long_path(LongPathReason reason, bool holds) noexcept {
  const auto bit = static_cast<std::uint32_t>(reason);
  if (holds) {
    long_path_reasons.fetch_or(bit, std::memory_order_relaxed);
  } else {
    long_path_reasons.fetch_and(~bit, std::memory_order_relaxed);
  }
}

}  // namespace isthmus
