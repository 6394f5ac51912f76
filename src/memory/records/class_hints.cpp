// SPDX-License-Identifier: Apache-2.0
#include "memory/records/class_hints.hpp"

#include <algorithm>

#include "core/expects.hpp"

namespace isthmus {

void ClassHints::mark(const void* base, std::size_t nbytes, unsigned size_class) noexcept {
  ISTHMUS_EXPECTS(nbytes > 0 && size_class < 64, nbytes, size_class);
  const bool is_small = size_class <= k_last_small_class;
  auto& cells = is_small ? small_ : large_;
  const auto bits = is_small ? k_small_granule : k_large_granule;
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const auto first = begin >> bits;
  const auto last = (begin + std::min<std::uintptr_t>(nbytes - 1, ~begin)) >> bits;
  const auto bit = std::uint64_t{1} << size_class;
  for (auto granule = first; granule <= std::min(last, first + k_mask); ++granule) {
    auto& cell = cells[granule & k_mask];
    if ((cell.load(std::memory_order_relaxed) & bit) == 0) {
      cell.fetch_or(bit, std::memory_order_relaxed);
    }
  }
}

}  // namespace isthmus
