// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves of elements between two endpoints that do not overlap.

#include "array/element_move.hpp"
#include "transfer/copy_plan.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {

struct PlacedMove {
  const Endpoint& destination;  // both point to the lowest bytes
  const Endpoint& source;
  // Sizes of the address ranges of both sides.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  ElementMove what;

  [[nodiscard]] bool host_can_copy() const noexcept {
    return destination.host_can_copy() && source.host_can_copy();
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return what.elements() * what.widest(); }
  // The memory that the move accesses, as a copy.
  [[nodiscard]] CopyPlan touching() const noexcept {
    return {destination, source, destination_bytes, source_bytes, nbytes()};
  }
};

// Executes the move in the way that suits its endpoints. `queue` was chosen by `choose_queue`.
[[nodiscard]] Submitted move_apart(Queue* queue, const PlacedMove& move, TransferOptions options);

// Moves in chunks through host memory, by several threads if a device has a staging ring. Pre: the
// host cannot access both sides. Only tests pass a `most_piece_bytes`.
[[nodiscard]] Submitted move_in_pieces(Queue& queue, const PlacedMove& move,
                                       TransferOptions options,
                                       std::size_t most_piece_bytes = SIZE_MAX);

// Executes on the host, which can access both sides: `effect()` does the work and owns what it
// needs.
template <class Effect>
Submitted move_by_host(Queue* queue, const PlacedMove& move, TransferOptions options,
                       const Effect& effect) {
  const auto touching = move.touching();
  TouchedMemory touched;
  touched.add(move.destination, move.destination_bytes, true);
  touched.add(move.source, move.source_bytes, false);
  if (host_does_it(queue, touched, options, touching.nbytes)) {
    return directly(queue, touched, options, effect);
  }
  return carry_out(queue, std::make_shared<PlainEffect<Effect>>(touching, effect),
                   std::move(options));
}

// Combines two operations into one, the second ordered after the first: `first(options)` and
// `second(options)` submit them. What the caller keeps alive lives until both have ended. If the
// second is refused while the first is in flight, the event of both fails once the first has ended.
template <class First, class Second>
Submitted one_after_other(TransferOptions options, const First& first, const Second& second) {
  const auto kept = std::make_shared<std::vector<Owner>>(std::move(options.owners));
  const bool blocking = options.blocking;
  TransferOptions behind;
  behind.blocking = blocking;
  behind.owners.push_back(owner_of(kept));
  behind.after.reserve(1);
  options.owners.clear();
  PartFailure failure;
  failure.keep(kept);
  Submitted begun = first(std::move(options));
  ISTHMUS_TRY(begun);
  if (*begun) {
    behind.after.push_back(*begun);
  }
  Submitted ended = without_throwing([&] { return second(std::move(behind)); });
  if (!ended && *begun) {
    return failure.after(**begun, ended.take_error());
  }
  return ended;
}

}  // namespace isthmus
