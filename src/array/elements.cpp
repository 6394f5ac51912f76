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
using Block = std::array<std::byte, k_block * k_largest_element>;

// Converts at most `k_block` elements.
void convert_block(const ElementRow& row, const Conversion& conversion,
                   std::size_t to_bytes) noexcept {
  alignas(64) Block one;
  alignas(64) Block other;
  const auto* from = row.from;
  auto* free = one.data();
  auto* next = other.data();
  if (!is_packed(row.from_stride, conversion.read_bytes)) {
    copy_elements({free, signed_of(conversion.read_bytes), from, row.from_stride, row.count},
                  conversion.read_bytes);
    from = free;
    std::swap(free, next);
  }
  const bool ends_packed = is_packed(row.to_stride, to_bytes);
  for (std::size_t i = 0; i < conversion.count; ++i) {
    const bool is_last = i + 1 == conversion.count;
    auto* const to = ends_packed && is_last ? row.to : free;
    if (is_last && !ends_packed &&
        conversion
            .leaves_gaps) {  // otherwise bytes of this stack frame would leak into the padding
      std::memset(to, 0, row.count * to_bytes);
    }
    conversion.steps.at(i).run(to, from, row.count);
    from = to;
    std::swap(free, next);
  }
  if (!ends_packed) {
    copy_elements({row.to, row.to_stride, from, signed_of(to_bytes), row.count}, to_bytes);
  }
}

}  // namespace

void convert_elements(const ElementRow& row, const Conversion& conversion,
                      std::size_t to_bytes) noexcept {
  if (conversion.count == 0) {
    copy_elements(row, to_bytes);
    return;
  }
  const bool is_one_pass = conversion.count == 1 &&
                           is_packed(row.from_stride, conversion.read_bytes) &&
                           is_packed(row.to_stride, to_bytes);
  if (is_one_pass) {
    conversion.steps[0].run(row.to, row.from, row.count);
    return;
  }
  for (std::size_t done = 0; done < row.count; done += k_block) {
    const auto at = signed_of(done);
    convert_block({row.to + at * row.to_stride, row.to_stride, row.from + at * row.from_stride,
                   row.from_stride, std::min(k_block, row.count - done)},
                  conversion, to_bytes);
  }
}

}  // namespace isthmus
