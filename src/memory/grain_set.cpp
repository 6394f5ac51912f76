// SPDX-License-Identifier: Apache-2.0
#include "memory/grain_set.hpp"

#include <bit>

namespace isthmus {

bool grain_set::has(index number) const noexcept { return (word(0, number) & bit(number)) != 0; }

void grain_set::insert(index number) noexcept {
  if (has(number)) {
    return;
  }
  ++size_;
  for (unsigned level = 0; level < k_levels; ++level, number >>= k_bits) {
    word(level, number) |= bit(number);
  }
}

void grain_set::erase(index number) noexcept {
  if (!has(number)) {
    return;
  }
  --size_;
  for (unsigned level = 0; level < k_levels; ++level, number >>= k_bits) {
    auto& in = word(level, number);
    in &= ~bit(number);
    if (in != 0) {
      return;
    }
  }
}

// Goes up to the first level whose word has a member from there on, then down to its first member.
grain_set::index grain_set::next(index from) const noexcept {
  auto at = from;
  auto end = k_end;
  for (unsigned level = 0; level < k_levels && at < end; ++level) {
    const auto left = word(level, at) & (~std::uint64_t{0} << (at & 63U));
    if (left != 0) {
      at = (at & ~index{63}) | static_cast<index>(std::countr_zero(left));
      while (level-- > 0) {
        at = at << k_bits | static_cast<index>(std::countr_zero(word(level, at << k_bits)));
      }
      return at;
    }
    at = (at >> k_bits) + 1;
    end >>= k_bits;
  }
  return k_none;
}

}  // namespace isthmus
