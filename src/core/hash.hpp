#pragma once
// Numbers to places of a table.

#include <cstdint>

namespace isthmus {

// All bits of `number` have a part in the upper half, so that addresses in equal steps spread too.
[[nodiscard]] constexpr std::uint64_t hash_of(std::uint64_t number) noexcept {
  constexpr std::uint64_t k_spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth)
  const auto mixed = number * k_spread;
  return (mixed ^ (mixed >> 32)) * k_spread;
}

}  // namespace isthmus
