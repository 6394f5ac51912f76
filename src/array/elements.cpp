// SPDX-License-Identifier: Apache-2.0
#include "array/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Number of elements per block, chosen so that both buffers fit into the L1 cache.
constexpr std::size_t k_block = 256;
using Block = std::array<std::byte, k_block * k_largest_element>;

// Converts at most `k_block` elements.
void convert_block(const ElementRow& row, const Conversion& conversion,
                   std::size_t to_bytes) noexcept {
  alignas(64) Block first_buffer;
  alignas(64) Block second_buffer;
  const auto* source = row.source;
  auto* current = first_buffer.data();
  auto* next = second_buffer.data();
  if (!is_packed(row.source_stride, conversion.read_bytes)) {
    copy_elements({current, signed_of(conversion.read_bytes), source, row.source_stride, row.count},
                  conversion.read_bytes);
    source = current;
    std::swap(current, next);
  }
  const bool ends_packed = is_packed(row.destination_stride, to_bytes);
  for (std::size_t i = 0; i < conversion.count; ++i) {
    const bool is_last = i + 1 == conversion.count;
    auto* const destination = ends_packed && is_last ? row.destination : current;
    // Otherwise bytes of this stack frame would leak into the padding of the destination.
    if (is_last && !ends_packed && conversion.leaves_gaps) {
      std::memset(destination, 0, row.count * to_bytes);
    }
    conversion.steps.at(i).run(destination, source, row.count);
    source = destination;
    std::swap(current, next);
  }
  if (!ends_packed) {
    copy_elements({row.destination, row.destination_stride, source, signed_of(to_bytes), row.count},
                  to_bytes);
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
                           is_packed(row.source_stride, conversion.read_bytes) &&
                           is_packed(row.destination_stride, to_bytes);
  if (is_one_pass) {
    conversion.steps[0].run(row.destination, row.source, row.count);
    return;
  }
  for (std::size_t done = 0; done < row.count; done += k_block) {
    const auto at = signed_of(done);
    convert_block({row.destination + at * row.destination_stride, row.destination_stride,
                   row.source + at * row.source_stride, row.source_stride,
                   std::min(k_block, row.count - done)},
                  conversion, to_bytes);
  }
}

}  // namespace isthmus
