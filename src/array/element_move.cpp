// SPDX-License-Identifier: Apache-2.0
#include "array/element_move.hpp"

#include <algorithm>

#include "array/conversion.hpp"
#include "array/elements.hpp"
#include "core/expects.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"

namespace isthmus {

std::size_t ElementMove::elements() const noexcept {
  std::size_t count = 1;
  for (const auto& dimension : dimensions) {
    count *= dimension.count;
  }
  return count;
}

ElementMove joined(ElementMove move) noexcept {
  std::size_t joined_count = 0;
  for (const auto next : move.dimensions) {  // by value: entries of the list are overwritten
    if (joined_count != 0) {
      auto& outer = move.dimensions[joined_count - 1];
      const auto count = signed_of(next.count);
      if (outer.destination_stride == next.destination_stride * count &&
          outer.source_stride == next.source_stride * count) {
        outer = {outer.count * next.count, next.destination_stride, next.source_stride};
        continue;
      }
    }
    move.dimensions[joined_count++] = next;
  }
  move.dimensions.shorten(joined_count);
  return move;
}

ElementMove move_between(const ArrayLayout& target_layout, std::byte* destination,
                         const ArrayLayout& source_layout, const std::byte* source) noexcept {
  ISTHMUS_EXPECTS(target_layout.dimensions.size() == source_layout.dimensions.size());
  ElementMove move;
  move.destination = destination;
  move.source = source;
  move.destination_type = target_layout.dtype;
  move.source_type = source_layout.dtype;
  for (std::size_t i = 0; i < target_layout.dimensions.size(); ++i) {
    const auto [count, stride] = target_layout.dimensions[i];
    ISTHMUS_EXPECTS(count > 0 && count == source_layout.dimensions[i].count, count);
    if (count == 1) {
      continue;
    }
    MoveDimension dimension{static_cast<std::size_t>(count), stride,
                            source_layout.dimensions[i].stride};
    if (dimension.destination_stride < 0) {
      move.destination += (count - 1) * dimension.destination_stride;
      move.source += (count - 1) * dimension.source_stride;
      dimension = {dimension.count, -dimension.destination_stride, -dimension.source_stride};
    }
    move.dimensions.append(dimension);
  }
  std::sort(move.dimensions.begin(), move.dimensions.end(),
            [](const MoveDimension& a, const MoveDimension& b) {
              return a.destination_stride > b.destination_stride;
            });
  return joined(move);
}

bool is_strided_copy(const ElementMove& move) noexcept {
  return move.destination_type == move.source_type &&
         move.dimensions.size() <= StridedCopy::k_max_dimensions &&
         std::ranges::none_of(move.dimensions, [](const MoveDimension& dimension) {
           return dimension.source_stride < 0;
         });
}

StridedCopy as_strided(const ElementMove& move) noexcept {
  ISTHMUS_EXPECTS(is_strided_copy(move));
  StridedCopy copy;
  copy.destination = move.destination;
  copy.source = move.source;
  copy.width = move.destination_item();
  for (const auto& dimension : move.dimensions) {
    copy.append({dimension.count, static_cast<std::size_t>(dimension.destination_stride),
                 static_cast<std::size_t>(dimension.source_stride)});
  }
  return copy;
}

namespace {

// Moves elements row by row along the innermost dimension. The first and the last row may be
// incomplete.
class RowMover {
 public:
  explicit RowMover(const ElementMove& move) noexcept
      : move_{move},
        conversion_{conversion_of(move.destination_type, move.source_type)},
        item_{move.destination_item()},
        row_{move.dimensions.empty() ? MoveDimension{1, signed_of(move.destination_item()),
                                                     signed_of(conversion_.read_bytes)}
                                     : move.dimensions.back()} {}

  // Moves elements [begin, end), counted in the order of the destination.
  void move(std::size_t begin, std::size_t end) const noexcept {
    const auto& dimensions = move_.dimensions;
    RowWalk<k_max_array_dimensions> row{
        {dimensions.begin(), dimensions.empty() ? 0 : dimensions.size() - 1}, begin / row_.count};
    auto column = signed_of(begin % row_.count);
    for (auto remaining = end - begin; remaining != 0; row.next()) {
      const auto count = std::min(remaining, row_.count - static_cast<std::size_t>(column));
      convert_elements(
          {move_.destination + row.destination_offset() + column * row_.destination_stride,
           row_.destination_stride,
           move_.source + row.source_offset() + column * row_.source_stride, row_.source_stride,
           count},
          conversion_, item_);
      remaining -= count;
      column = 0;
    }
  }

 private:
  const ElementMove& move_;
  const Conversion conversion_;
  const std::size_t item_;
  const MoveDimension row_;
};

}  // namespace

void move_elements(const ElementMove& move) noexcept { RowMover{move}.move(0, move.elements()); }

void move_elements_in_parallel(const ElementMove& move) noexcept {
  const auto item = move.widest();
  const auto nbytes = move.elements() * item;
  if (nbytes < k_large_bytes) {
    move_elements(move);
    return;
  }
  const RowMover mover{move};
  share_out(nbytes, [&mover, item](std::size_t begin, std::size_t n) {
    mover.move(begin / item, (begin + n) / item);
  });
}

}  // namespace isthmus
