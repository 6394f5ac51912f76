// SPDX-License-Identifier: Apache-2.0
#include "array/copying.hpp"

#include <algorithm>

#include "array/endpoint_move.hpp"
#include "array/move_through_copy.hpp"
#include "transfer/strided.hpp"
#include "transfer/transfer_events.hpp"

namespace isthmus {
namespace {

// Whether every element is copied onto itself.
bool is_in_place(const ElementMove& move) noexcept {
  return move.destination == move.source && move.destination_type == move.source_type &&
         std::ranges::all_of(move.dimensions, [](const MoveDimension& dimension) {
           return dimension.destination_stride == dimension.source_stride;
         });
}

std::byte* first_of(const ArraySide& side) noexcept {
  return side.endpoint.pointer + side.layout.first_offset;
}

}  // namespace

Submitted move_disjoint(Queue* queue, const EndpointMove& move, TransferOptions options) {
  if (is_strided_copy(move.element_move)) {
    return copy_strided_disjoint(queue, move.destination, move.source,
                                 as_strided(move.element_move), std::move(options));
  }
  auto moved = move.host_can_copy() ? move_by_host(queue, move, std::move(options),
                                                   [element_move = move.element_move] {
                                                     move_elements_in_parallel(element_move);
                                                   })
                                    : move_in_chunks(*queue, move, std::move(options));
  ISTHMUS_TRY(moved);
  observe_copy(queue, move.destination, move.source,
               move.element_move.elements() * move.element_move.destination_item());
  return moved;
}

Submitted note_written(const ArraySide& destination, Submitted submitted) {
  const auto& layout = destination.layout;
  auto nbytes = layout.item();
  for (const auto& dimension : layout.dimensions) {
    nbytes *= static_cast<std::size_t>(dimension.count);
  }
  if (submitted && nbytes == layout.nbytes) {
    note_overwritten(destination.endpoint, nbytes, *submitted);
  }
  return submitted;
}

Submitted copy_array(Queue* requested, const ArraySide& destination, const ArraySide& source,
                     TransferOptions options) {
  auto source_layout = broadcast(source.layout, destination.layout);
  ISTHMUS_TRY(source_layout);
  ISTHMUS_TRY(check_disjoint(destination.layout));
  auto chosen = choose_queue(requested, destination.endpoint, source.endpoint);
  ISTHMUS_TRY(chosen);
  Queue* queue = *chosen;
  if (destination.layout.is_empty()) {
    return submit_no_op(queue, options);
  }
  const EndpointMove move{
      destination.endpoint, source.endpoint, destination.layout.nbytes, source.layout.nbytes,
      move_between(destination.layout, first_of(destination), *source_layout, first_of(source))};
  const bool is_disjoint =
      !may_share_bytes(destination.layout, address(destination.endpoint.pointer), source.layout,
                       address(source.endpoint.pointer));
  if (!is_disjoint && is_in_place(move.element_move)) {
    return move_by_host(queue, move, std::move(options), [] {});
  }
  return note_written(destination, is_disjoint
                                       ? move_disjoint(queue, move, std::move(options))
                                       : move_through_copy(queue, move, std::move(options)));
}

}  // namespace isthmus
