// SPDX-License-Identifier: Apache-2.0
#include "array/copying.hpp"

#include <algorithm>

#include "array/placed_move.hpp"
#include "array/set_aside.hpp"
#include "transfer/strided.hpp"

namespace isthmus {
namespace {

// Whether source and destination of every element coincide.
bool stays(const element_move& what) noexcept {
  return what.to == what.from && what.to_type == what.from_type &&
         std::ranges::all_of(what.dimensions,
                             [](const move_dimension& each) { return each.to == each.from; });
}

std::byte* first_of(const array_side& side) noexcept {
  return side.place.pointer + side.layout.before;
}

}  // namespace

submitted move_apart(queue* on, const placed_move& move, transfer_options options) {
  if (is_strided_copy(move.what)) {
    return copy_strided_apart(on, move.destination, move.source, as_strided(move.what),
                              std::move(options));
  }
  if (!move.host_can_copy()) {
    return move_in_pieces(*on, move, std::move(options));
  }
  return move_by_host(on, move, std::move(options), [what = move.what] { share_elements(what); });
}

submitted note_written(const array_side& destination, submitted made) {
  const auto& layout = destination.layout;
  auto nbytes = layout.item();
  for (const auto& along : layout.dimensions) {
    nbytes *= static_cast<std::size_t>(along.count);
  }
  if (made && nbytes == layout.nbytes) {
    note_overwritten(destination.place, nbytes, *made);
  }
  return made;
}

submitted copy_array(queue* asked, const array_side& destination, const array_side& source,
                     transfer_options options) {
  auto from = broadcast(source.layout, destination.layout);
  ISTHMUS_TRY(from);
  ISTHMUS_TRY(check_apart(destination.layout));
  auto chosen = choose_queue(asked, destination.place, source.place);
  ISTHMUS_TRY(chosen);
  queue* on = *chosen;
  if (destination.layout.is_empty()) {
    return nothing_to_do(on, options);
  }
  const placed_move move{
      destination.place, source.place, destination.layout.nbytes, source.layout.nbytes,
      move_between(destination.layout, first_of(destination), *from, first_of(source))};
  const bool is_apart = !may_share_bytes(destination.layout, address(destination.place.pointer),
                                         source.layout, address(source.place.pointer));
  if (!is_apart && stays(move.what)) {
    return move_by_host(on, move, std::move(options), [] {});
  }
  return note_written(destination, is_apart ? move_apart(on, move, std::move(options))
                                            : move_by_way_of_copy(on, move, std::move(options)));
}

}  // namespace isthmus
