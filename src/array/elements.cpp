// SPDX-License-Identifier: Apache-2.0
#include "array/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Elements processed per step, such that they stay in the L1 cache.
constexpr std::size_t k_block = 256;
using block = std::array<std::byte, k_block * k_largest_element>;

// Converts at most `k_block` elements.
void convert_block(const element_row& row, const conversion& how, std::size_t to_bytes) noexcept {
  alignas(64) block one;
  alignas(64) block other;
  const auto* from = row.from;
  auto* free = one.data();
  auto* next = other.data();
  if (!is_packed(row.from_stride, how.read_bytes)) {
    copy_elements({free, signed_of(how.read_bytes), from, row.from_stride, row.count},
                  how.read_bytes);
    from = free;
    std::swap(free, next);
  }
  const bool ends_packed = is_packed(row.to_stride, to_bytes);
  for (std::size_t i = 0; i < how.count; ++i) {
    const bool is_last = i + 1 == how.count;
    auto* const to = ends_packed && is_last ? row.to : free;
    if (is_last && !ends_packed &&
        how.leaves_gaps) {  // otherwise bytes of this stack frame would leak into the padding
      std::memset(to, 0, row.count * to_bytes);
    }
    how.steps.at(i).run(to, from, row.count);
    from = to;
    std::swap(free, next);
  }
  if (!ends_packed) {
    copy_elements({row.to, row.to_stride, from, signed_of(to_bytes), row.count}, to_bytes);
  }
}

}  // namespace

void convert_elements(const element_row& row, const conversion& how,
                      std::size_t to_bytes) noexcept {
  if (how.count == 0) {
    copy_elements(row, to_bytes);
    return;
  }
  const bool is_one_pass = how.count == 1 && is_packed(row.from_stride, how.read_bytes) &&
                           is_packed(row.to_stride, to_bytes);
  if (is_one_pass) {
    how.steps[0].run(row.to, row.from, row.count);
    return;
  }
  for (std::size_t done = 0; done < row.count; done += k_block) {
    const auto at = signed_of(done);
    convert_block({row.to + at * row.to_stride, row.to_stride, row.from + at * row.from_stride,
                   row.from_stride, std::min(k_block, row.count - done)},
                  how, to_bytes);
  }
}

}  // namespace isthmus
