// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_page_set.hpp"

#include <bit>

#include "core/expects.hpp"

namespace isthmus {

bool PoolPageSet::has(Index number) const noexcept { return (word(0, number) & bit(number)) != 0; }

void PoolPageSet::insert(Index number) noexcept {
  ISTHMUS_EXPECTS(k_none < number && number < k_end, number);
  if (has(number)) {
    return;
  }
  ++size_;
  for (unsigned level = 0; level < k_levels; ++level, number >>= k_bits) {
    word(level, number) |= bit(number);
  }
}

void PoolPageSet::erase(Index number) noexcept {
  ISTHMUS_EXPECTS(k_none < number && number < k_end, number);
  if (!has(number)) {
    return;
  }
  --size_;
  for (unsigned level = 0; level < k_levels; ++level, number >>= k_bits) {
    auto& bits = word(level, number);
    bits &= ~bit(number);
    if (bits != 0) {
      return;
    }
  }
}

// Ascends to the first level whose word has a member at or after the position, then descends to the
// first member there.
PoolPageSet::Index PoolPageSet::next(Index index) const noexcept {
  auto at = index;
  auto end = k_end;
  for (unsigned level = 0; level < k_levels && at < end; ++level) {
    const auto remaining = word(level, at) & (~std::uint64_t{0} << (at & 63U));
    if (remaining != 0) {
      at = (at & ~Index{63}) | static_cast<Index>(std::countr_zero(remaining));
      while (level-- > 0) {
        at = at << k_bits | static_cast<Index>(std::countr_zero(word(level, at << k_bits)));
      }
      return at;
    }
    at = (at >> k_bits) + 1;
    end >>= k_bits;
  }
  return k_none;
}

}  // namespace isthmus
