// SPDX-License-Identifier: Apache-2.0
#include "array/element_move.hpp"

#include <algorithm>

#include "array/conversion.hpp"
#include "array/elements.hpp"
#include "core/share_out.hpp"

namespace isthmus {

std::size_t ElementMove::elements() const noexcept {
  std::size_t all = 1;
  for (const auto& along : dimensions) {
    all *= along.count;
  }
  return all;
}

ElementMove joined(ElementMove move) noexcept {
  std::size_t kept = 0;
  for (const auto next : move.dimensions) {  // by value: entries of the list are overwritten
    if (kept != 0) {
      auto& outer = move.dimensions[kept - 1];
      const auto count = signed_of(next.count);
      if (outer.to == next.to * count && outer.from == next.from * count) {
        outer = {outer.count * next.count, next.to, next.from};
        continue;
      }
    }
    move.dimensions[kept++] = next;
  }
  move.dimensions.shorten(kept);
  return move;
}

ElementMove move_between(const ArrayLayout& target_layout, std::byte* destination,
                         const ArrayLayout& source_layout, const std::byte* source) noexcept {
  ElementMove made;
  made.to = destination;
  made.from = source;
  made.to_type = target_layout.of;
  made.from_type = source_layout.of;
  for (std::size_t i = 0; i < target_layout.dimensions.size(); ++i) {
    const auto [count, stride] = target_layout.dimensions[i];
    if (count == 1) {
      continue;
    }
    MoveDimension along{static_cast<std::size_t>(count), stride,
                        source_layout.dimensions[i].stride};
    if (along.to < 0) {
      made.to += (count - 1) * along.to;
      made.from += (count - 1) * along.from;
      along = {along.count, -along.to, -along.from};
    }
    made.dimensions.append(along);
  }
  std::sort(made.dimensions.begin(), made.dimensions.end(),
            [](const MoveDimension& one, const MoveDimension& next) { return one.to > next.to; });
  return joined(made);
}

bool is_strided_copy(const ElementMove& move) noexcept {
  return move.to_type == move.from_type &&
         move.dimensions.size() <= StridedCopy::k_most_dimensions &&
         std::ranges::none_of(move.dimensions,
                              [](const MoveDimension& each) { return each.from < 0; });
}

StridedCopy as_strided(const ElementMove& move) noexcept {
  StridedCopy made;
  made.destination = move.to;
  made.source = move.from;
  made.width = move.to_item();
  for (const auto& each : move.dimensions) {
    made.append(
        {each.count, static_cast<std::size_t>(each.to), static_cast<std::size_t>(each.from)});
  }
  return made;
}

namespace {

// Moves a row at a time: the innermost dimension. The first and the last row may be incomplete.
class RowMover {
 public:
  explicit RowMover(const ElementMove& move) noexcept
      : what_{move},
        how_{conversion_of(move.to_type, move.from_type)},
        item_{move.to_item()},
        row_{move.dimensions.empty()
                 ? MoveDimension{1, signed_of(move.to_item()), signed_of(how_.read_bytes)}
                 : move.dimensions.back()} {}

  // Moves elements [begin, end), counted in the order of the destination.
  void move(std::size_t begin, std::size_t end) const noexcept {
    const auto& all = what_.dimensions;
    RowWalk<k_most_array_dimensions> row{{all.begin(), all.empty() ? 0 : all.size() - 1},
                                         begin / row_.count};
    auto at = signed_of(begin % row_.count);
    for (auto left = end - begin; left != 0; row.next()) {
      const auto count = std::min(left, row_.count - static_cast<std::size_t>(at));
      convert_elements({what_.to + row.to() + at * row_.to, row_.to,
                        what_.from + row.from() + at * row_.from, row_.from, count},
                       how_, item_);
      left -= count;
      at = 0;
    }
  }

 private:
  const ElementMove& what_;
  const Conversion how_;
  const std::size_t item_;
  const MoveDimension row_;
};

}  // namespace

void move_elements(const ElementMove& move) noexcept { RowMover{move}.move(0, move.elements()); }

void share_elements(const ElementMove& move) noexcept {
  const auto item = move.widest();
  const auto nbytes = move.elements() * item;
  if (nbytes < k_large_bytes) {
    move_elements(move);
    return;
  }
  const RowMover mover{move};
  share_out(nbytes, [&mover, item](std::size_t at, std::size_t n) {
    mover.move(at / item, (at + n) / item);
  });
}

}  // namespace isthmus
