// SPDX-License-Identifier: Apache-2.0
#include "array/element_move.hpp"

#include <algorithm>

#include "array/conversion.hpp"
#include "array/elements.hpp"
#include "core/share_out.hpp"

namespace isthmus {

std::size_t element_move::elements() const noexcept {
  std::size_t all = 1;
  for (const auto& along : dimensions) {
    all *= along.count;
  }
  return all;
}

element_move joined(element_move what) noexcept {
  std::size_t kept = 0;
  for (const auto next : what.dimensions) {  // by value: entries of the list are overwritten
    if (kept != 0) {
      auto& outer = what.dimensions[kept - 1];
      const auto count = signed_of(next.count);
      if (outer.to == next.to * count && outer.from == next.from * count) {
        outer = {outer.count * next.count, next.to, next.from};
        continue;
      }
    }
    what.dimensions[kept++] = next;
  }
  what.dimensions.shorten(kept);
  return what;
}

element_move move_between(const array_layout& to, std::byte* destination, const array_layout& from,
                          const std::byte* source) noexcept {
  element_move made;
  made.to = destination;
  made.from = source;
  made.to_type = to.of;
  made.from_type = from.of;
  for (std::size_t i = 0; i < to.dimensions.size(); ++i) {
    const auto [count, stride] = to.dimensions[i];
    if (count == 1) {
      continue;
    }
    move_dimension along{static_cast<std::size_t>(count), stride, from.dimensions[i].stride};
    if (along.to < 0) {
      made.to += (count - 1) * along.to;
      made.from += (count - 1) * along.from;
      along = {along.count, -along.to, -along.from};
    }
    made.dimensions.append(along);
  }
  std::sort(made.dimensions.begin(), made.dimensions.end(),
            [](const move_dimension& one, const move_dimension& next) { return one.to > next.to; });
  return joined(made);
}

bool is_strided_copy(const element_move& what) noexcept {
  return what.to_type == what.from_type &&
         what.dimensions.size() <= strided_copy::k_most_dimensions &&
         std::ranges::none_of(what.dimensions,
                              [](const move_dimension& each) { return each.from < 0; });
}

strided_copy as_strided(const element_move& what) noexcept {
  strided_copy made;
  made.destination = what.to;
  made.source = what.from;
  made.width = what.to_item();
  for (const auto& each : what.dimensions) {
    made.append(
        {each.count, static_cast<std::size_t>(each.to), static_cast<std::size_t>(each.from)});
  }
  return made;
}

namespace {

// Moves a row at a time: the innermost dimension. The first and the last row may be incomplete.
class row_mover {
 public:
  explicit row_mover(const element_move& what) noexcept
      : what_{what},
        how_{conversion_of(what.to_type, what.from_type)},
        item_{what.to_item()},
        row_{what.dimensions.empty()
                 ? move_dimension{1, signed_of(what.to_item()), signed_of(how_.read_bytes)}
                 : what.dimensions.back()} {}

  // Moves elements [begin, end), counted in the order of the destination.
  void move(std::size_t begin, std::size_t end) const noexcept {
    const auto& all = what_.dimensions;
    row_walk<k_most_array_dimensions> row{{all.begin(), all.empty() ? 0 : all.size() - 1},
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
  const element_move& what_;
  const conversion how_;
  const std::size_t item_;
  const move_dimension row_;
};

}  // namespace

void move_elements(const element_move& what) noexcept { row_mover{what}.move(0, what.elements()); }

void share_elements(const element_move& what) noexcept {
  const auto item = what.widest();
  const auto nbytes = what.elements() * item;
  if (nbytes < k_large_bytes) {
    move_elements(what);
    return;
  }
  const row_mover mover{what};
  share_out(nbytes, [&mover, item](std::size_t at, std::size_t n) {
    mover.move(at / item, (at + n) / item);
  });
}

}  // namespace isthmus
