// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "array/copying.hpp"
#include "array/placed_move.hpp"
#include "array/set_aside.hpp"
#include "core/elements.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

struct Element {
  alignas(16) std::array<std::byte, k_largest_element> bytes{};
};

bool is_pattern(std::size_t item) noexcept {
  return is_power_of_two(item) && item <= sizeof FillPattern{}.bytes;
}

// The number of contiguous elements.
std::size_t run_of(const ElementMove& move) noexcept {
  if (move.dimensions.empty()) {
    return 1;
  }
  const auto& inner = move.dimensions.back();
  return is_packed(inner.to, move.to_item()) ? inner.count : 1;
}

bool is_one_run(const ElementMove& move) noexcept { return run_of(move) == move.elements(); }

// Whether all elements are aligned, as some drivers require of a fill.
bool is_aligned(const ElementMove& move) noexcept {
  const auto item = signed_of(move.to_item());
  return address(move.to) % move.to_item() == 0 &&
         std::ranges::all_of(move.dimensions,
                             [=](const MoveDimension& each) { return each.to % item == 0; });
}

FillPattern pattern_of(const Element& value, std::size_t item) noexcept {
  FillPattern made;
  std::memcpy(made.bytes, value.bytes.data(), item);
  made.nbytes = item;
  return made;
}

// Rows of at least this length are filled one by one: device memory for a prepared row is not
// worthwhile.
constexpr std::size_t k_long_row_bytes = std::size_t{1} << 20;
// A smaller fill is faster from the host than a driver's allocation.
constexpr std::size_t k_worth_allocation = std::size_t{1} << 20;

// Copies from the value itself, which the operation keeps alive.
Submitted fill_from_host(Queue& queue, const ArraySide& destination, ElementMove move,
                         const Element& value, TransferOptions options) {
  options.owners.push_back(owner_of(value));
  const auto* kept = static_cast<Element*>(options.owners.back().object());
  const Endpoint source{const_cast<std::byte*>(kept->bytes.data()), nullptr, nullptr};
  move.from = source.pointer;
  return move_in_pieces(
      queue, {destination.place, source, destination.layout.nbytes, move.to_item(), move},
      std::move(options));
}

// Fills each row with a command of its own, one after the other.
Submitted fill_rows(Queue& queue, const ArraySide& destination, const ElementMove& move,
                    const FillPattern& pattern, TransferOptions options) {
  TouchedMemory touched;
  touched.add(destination.place, destination.layout.nbytes, true);
  auto carrying = carrier(queue, destination.place, destination.place);
  ISTHMUS_TRY(carrying);
  return on_queue(queue, **carrying, touched, options, [&](WaitList after) -> Submitted {
    const auto elements = run_of(move);
    const std::span outer{move.dimensions.begin(), move.dimensions.size() - 1};
    RowWalk<k_most_array_dimensions> row{outer, 0};
    PartFailure failure;
    Ref<Event> last;
    for (auto left = move.elements(); left != 0; left -= elements, row.next()) {
      auto next = without_throwing([&] {
        return (*carrying)->fill(move.to + row.to(), pattern, elements * pattern.nbytes,
                                 last ? WaitList{&last, 1} : after);
      });
      if (!next) {
        return last ? failure.after(*last, next.take_error()) : next;
      }
      last = *std::move(next);
    }
    return last;
  });
}

// Fills one row in device memory first, then copies it to all rows.
Submitted fill_from_row(Queue& queue, const ArraySide& destination, const Endpoint& aside,
                        ElementMove move, const FillPattern& pattern, TransferOptions options) {
  const auto nbytes = run_of(move) * pattern.nbytes;
  move.from = aside.pointer;
  if (nbytes != pattern.nbytes) {
    const auto row = move.dimensions.back();
    move.dimensions.shorten(move.dimensions.size() - 1);
    move.dimensions.append({row.count, row.to, row.to});
  }
  return one_after_other(
      std::move(options),
      [&](TransferOptions first) { return fill(&queue, aside, pattern, nbytes, std::move(first)); },
      [&](TransferOptions second) {
        return move_apart(
            &queue, {destination.place, aside, destination.layout.nbytes, nbytes, joined(move)},
            std::move(second));
      });
}

// Fills on the device, if it has memory for the prepared row; else from the host.
Submitted fill_on_device(Queue& queue, const ArraySide& destination, const ElementMove& move,
                         const Element& value, TransferOptions options) {
  const auto pattern = pattern_of(value, move.to_item());
  const auto row_bytes = run_of(move) * pattern.nbytes;
  const bool is_long = row_bytes >= k_long_row_bytes;
  if (is_long && is_aligned(move)) {
    return fill_rows(queue, destination, move, pattern, std::move(options));
  }
  const auto& like = *destination.place.memory;
  const bool is_small = move.elements() * pattern.nbytes < k_worth_allocation;
  if (is_long || (is_small && !is_of_a_pool(like))) {
    return fill_from_host(queue, destination, move, value, std::move(options));
  }
  auto aside = memory_like(queue, like, row_bytes);
  if (!aside && aside.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    return fill_from_host(queue, destination, move, value, std::move(options));
  }
  ISTHMUS_TRY(aside);
  return fill_from_row(queue, destination, *aside, move, pattern, std::move(options));
}

}  // namespace

Submitted fill_array(Queue* asked, const ArraySide& destination, const std::byte* value,
                     TransferOptions options) {
  ISTHMUS_TRY(check_apart(destination.layout));
  auto chosen = choose_queue(asked, destination.place, destination.place);
  ISTHMUS_TRY(chosen);
  Queue* on = *chosen;
  if (destination.layout.is_empty()) {
    return nothing_to_do(on, options);
  }
  const auto item = destination.layout.item();
  Element kept;
  std::memcpy(kept.bytes.data(), value, item);
  ArrayLayout repeated = destination.layout;
  for (auto& along : repeated.dimensions) {
    along.stride = 0;
  }
  const auto what =
      move_between(destination.layout, destination.place.pointer + destination.layout.before,
                   repeated, kept.bytes.data());
  if (is_pattern(item) && is_one_run(what)) {
    return fill(on, destination.place, pattern_of(kept, item), destination.layout.nbytes,
                std::move(options));
  }
  if (destination.place.host_can_copy()) {
    const Endpoint nothing;
    return note_written(
        destination,
        move_by_host(on, {destination.place, nothing, destination.layout.nbytes, 0, what},
                     std::move(options), [what, kept] {
                       auto from_here = what;
                       from_here.from = kept.bytes.data();
                       share_elements(from_here);
                     }));
  }
  return note_written(destination,
                      is_pattern(item)
                          ? fill_on_device(*on, destination, what, kept, std::move(options))
                          : fill_from_host(*on, destination, what, kept, std::move(options)));
}

}  // namespace isthmus
