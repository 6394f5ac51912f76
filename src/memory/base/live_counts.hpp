// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counters of the live allocations and their bytes, by kind. Thread-safe. The counters are spread
// over cache lines by address, so that threads do not contend. A reader adds them up; the total is
// exact if no other thread changes them meanwhile.

#include <array>
#include <atomic>
#include <cstdint>

#include "backend/device.hpp"

namespace isthmus {

struct LiveTotal {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class LiveCounts {
 public:
  void add(const void* pointer, UsmKind kind, std::size_t nbytes) noexcept;
  void remove(const void* pointer, UsmKind kind, std::size_t nbytes) noexcept;
  // The total of one kind, or of all kinds (UNKNOWN).
  [[nodiscard]] LiveTotal total(UsmKind kind) const noexcept;

 private:
  static constexpr std::size_t k_kinds = 3;
  struct alignas(64) Shard {
    std::array<std::atomic<std::uint64_t>, k_kinds> count{};
    std::array<std::atomic<std::uint64_t>, k_kinds> bytes{};
  };
  [[nodiscard]] Shard& shard_of(const void* pointer) noexcept;

  std::array<Shard, 64> shards_;
};

// The counters of the process; never destroyed.
[[nodiscard]] LiveCounts& process_live_counts() noexcept;

}  // namespace isthmus
