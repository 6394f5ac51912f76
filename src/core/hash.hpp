// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hashes numbers for tables.

#include <cstdint>

namespace isthmus {

// Every bit of `number` affects the upper half of the result, so that addresses at regular
// distances are distributed evenly too.
[[nodiscard]] constexpr std::uint64_t hash_of(std::uint64_t number) noexcept {
  constexpr std::uint64_t k_spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth)
  const auto mixed = number * k_spread;
  return (mixed ^ (mixed >> 32)) * k_spread;
}

}  // namespace isthmus
