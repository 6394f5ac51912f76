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

struct element {
  alignas(16) std::array<std::byte, k_largest_element> bytes{};
};

bool is_pattern(std::size_t item) noexcept {
  return is_power_of_two(item) && item <= sizeof fill_pattern{}.bytes;
}

// The number of contiguous elements.
std::size_t run_of(const element_move& what) noexcept {
  if (what.dimensions.empty()) {
    return 1;
  }
  const auto& inner = what.dimensions.back();
  return is_packed(inner.to, what.to_item()) ? inner.count : 1;
}

bool is_one_run(const element_move& what) noexcept { return run_of(what) == what.elements(); }

// Whether all elements are aligned, as some drivers require of a fill.
bool is_aligned(const element_move& what) noexcept {
  const auto item = signed_of(what.to_item());
  return address(what.to) % what.to_item() == 0 &&
         std::ranges::all_of(what.dimensions,
                             [=](const move_dimension& each) { return each.to % item == 0; });
}

fill_pattern pattern_of(const element& value, std::size_t item) noexcept {
  fill_pattern made;
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
submitted fill_from_host(queue& on, const array_side& destination, element_move what,
                         const element& value, transfer_options options) {
  options.owners.push_back(owner_of(value));
  const auto* kept = static_cast<element*>(options.owners.back().object());
  const endpoint source{const_cast<std::byte*>(kept->bytes.data()), nullptr, nullptr};
  what.from = source.pointer;
  return move_in_pieces(
      on, {destination.place, source, destination.layout.nbytes, what.to_item(), what},
      std::move(options));
}

// Fills each row with a command of its own, one after the other.
submitted fill_rows(queue& on, const array_side& destination, const element_move& what,
                    const fill_pattern& pattern, transfer_options options) {
  touched_memory touched;
  touched.add(destination.place, destination.layout.nbytes, true);
  auto carrying = carrier(on, destination.place, destination.place);
  ISTHMUS_TRY(carrying);
  return on_queue(on, **carrying, touched, options, [&](wait_list after) -> submitted {
    const auto elements = run_of(what);
    const std::span outer{what.dimensions.begin(), what.dimensions.size() - 1};
    row_walk<k_most_array_dimensions> row{outer, 0};
    part_failure failure;
    ref<event> last;
    for (auto left = what.elements(); left != 0; left -= elements, row.next()) {
      auto next = without_throwing([&] {
        return (*carrying)->fill(what.to + row.to(), pattern, elements * pattern.nbytes,
                                 last ? wait_list{&last, 1} : after);
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
submitted fill_from_row(queue& on, const array_side& destination, const endpoint& aside,
                        element_move what, const fill_pattern& pattern, transfer_options options) {
  const auto nbytes = run_of(what) * pattern.nbytes;
  what.from = aside.pointer;
  if (nbytes != pattern.nbytes) {
    const auto row = what.dimensions.back();
    what.dimensions.shorten(what.dimensions.size() - 1);
    what.dimensions.append({row.count, row.to, row.to});
  }
  return one_after_other(
      std::move(options),
      [&](transfer_options first) { return fill(&on, aside, pattern, nbytes, std::move(first)); },
      [&](transfer_options second) {
        return move_apart(
            &on, {destination.place, aside, destination.layout.nbytes, nbytes, joined(what)},
            std::move(second));
      });
}

// Fills on the device, if it has memory for the prepared row; else from the host.
submitted fill_on_device(queue& on, const array_side& destination, const element_move& what,
                         const element& value, transfer_options options) {
  const auto pattern = pattern_of(value, what.to_item());
  const auto row_bytes = run_of(what) * pattern.nbytes;
  const bool is_long = row_bytes >= k_long_row_bytes;
  if (is_long && is_aligned(what)) {
    return fill_rows(on, destination, what, pattern, std::move(options));
  }
  const auto& like = *destination.place.memory;
  const bool is_small = what.elements() * pattern.nbytes < k_worth_allocation;
  if (is_long || (is_small && !is_of_a_pool(like))) {
    return fill_from_host(on, destination, what, value, std::move(options));
  }
  auto aside = memory_like(on, like, row_bytes);
  if (!aside && aside.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    return fill_from_host(on, destination, what, value, std::move(options));
  }
  ISTHMUS_TRY(aside);
  return fill_from_row(on, destination, *aside, what, pattern, std::move(options));
}

}  // namespace

submitted fill_array(queue* asked, const array_side& destination, const std::byte* value,
                     transfer_options options) {
  ISTHMUS_TRY(check_apart(destination.layout));
  auto chosen = choose_queue(asked, destination.place, destination.place);
  ISTHMUS_TRY(chosen);
  queue* on = *chosen;
  if (destination.layout.is_empty()) {
    return nothing_to_do(on, options);
  }
  const auto item = destination.layout.item();
  element kept;
  std::memcpy(kept.bytes.data(), value, item);
  array_layout repeated = destination.layout;
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
    const endpoint nothing;
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
