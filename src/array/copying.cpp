// SPDX-License-Identifier: Apache-2.0
#include "array/copying.hpp"

#include <algorithm>

#include "array/placed_move.hpp"
#include "array/set_aside.hpp"
#include "transfer/strided.hpp"

namespace isthmus {
namespace {

// Whether source and destination of every element coincide.
bool stays(const ElementMove& move) noexcept {
  return move.to == move.from && move.to_type == move.from_type &&
         std::ranges::all_of(move.dimensions,
                             [](const MoveDimension& each) { return each.to == each.from; });
}

std::byte* first_of(const ArraySide& side) noexcept {
  return side.place.pointer + side.layout.before;
}

}  // namespace

Submitted move_apart(Queue* queue, const PlacedMove& move, TransferOptions options) {
  if (is_strided_copy(move.what)) {
    return copy_strided_apart(queue, move.destination, move.source, as_strided(move.what),
                              std::move(options));
  }
  if (!move.host_can_copy()) {
    return move_in_pieces(*queue, move, std::move(options));
  }
  return move_by_host(queue, move, std::move(options),
                      [what = move.what] { share_elements(what); });
}

Submitted note_written(const ArraySide& destination, Submitted made) {
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

Submitted copy_array(Queue* asked, const ArraySide& destination, const ArraySide& source,
                     TransferOptions options) {
  auto from = broadcast(source.layout, destination.layout);
  ISTHMUS_TRY(from);
  ISTHMUS_TRY(check_apart(destination.layout));
  auto chosen = choose_queue(asked, destination.place, source.place);
  ISTHMUS_TRY(chosen);
  Queue* on = *chosen;
  if (destination.layout.is_empty()) {
    return nothing_to_do(on, options);
  }
  const PlacedMove move{
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
