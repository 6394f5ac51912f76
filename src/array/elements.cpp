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
                   std::size_t destination_item) noexcept {
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
  const bool is_destination_packed = is_packed(row.destination_stride, destination_item);
  for (std::size_t i = 0; i < conversion.count; ++i) {
    const bool is_last = i + 1 == conversion.count;
    auto* const destination = is_destination_packed && is_last ? row.destination : current;
    // Without this, bytes of this stack frame would leak into the padding of the destination.
    if (is_last && !is_destination_packed && conversion.leaves_gaps) {
      std::memset(destination, 0, row.count * destination_item);
    }
    conversion.steps.at(i).run(destination, source, row.count);
    source = destination;
    std::swap(current, next);
  }
  if (!is_destination_packed) {
    copy_elements(
        {row.destination, row.destination_stride, source, signed_of(destination_item), row.count},
        destination_item);
  }
}

}  // namespace

void convert_elements(const ElementRow& row, const Conversion& conversion,
                      std::size_t destination_item) noexcept {
  if (conversion.count == 0) {
    copy_elements(row, destination_item);
    return;
  }
  const bool is_one_pass = conversion.count == 1 &&
                           is_packed(row.source_stride, conversion.read_bytes) &&
                           is_packed(row.destination_stride, destination_item);
  if (is_one_pass) {
    conversion.steps[0].run(row.destination, row.source, row.count);
    return;
  }
  for (std::size_t converted = 0; converted < row.count; converted += k_block) {
    const auto first = signed_of(converted);
    convert_block({row.destination + first * row.destination_stride, row.destination_stride,
                   row.source + first * row.source_stride, row.source_stride,
                   std::min(k_block, row.count - converted)},
                  conversion, destination_item);
  }
}

}  // namespace isthmus
