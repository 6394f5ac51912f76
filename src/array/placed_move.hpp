// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves of elements between two endpoints that do not overlap.

#include "array/element_move.hpp"
#include "transfer/movement.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {

struct placed_move {
  const endpoint& destination;  // both point to the lowest bytes
  const endpoint& source;
  // Sizes of the address ranges of both sides.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  element_move what;

  [[nodiscard]] bool host_can_copy() const noexcept {
    return destination.host_can_copy() && source.host_can_copy();
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return what.elements() * what.widest(); }
  // The memory that the move accesses, as a copy.
  [[nodiscard]] movement touching() const noexcept {
    return {destination, source, destination_bytes, source_bytes, nbytes()};
  }
};

// Executes the move in the way that suits its endpoints. `on` was chosen by `choose_queue`.
[[nodiscard]] submitted move_apart(queue* on, const placed_move& move, transfer_options options);

// Moves in chunks through host memory, by several threads if a device has a staging ring. Pre: the
// host cannot access both sides. Only tests pass a `most_piece_bytes`.
[[nodiscard]] submitted move_in_pieces(queue& on, const placed_move& move, transfer_options options,
                                       std::size_t most_piece_bytes = SIZE_MAX);

// Executes on the host, which can access both sides: `effect()` does the work and owns what it
// needs.
template <class Effect>
submitted move_by_host(queue* on, const placed_move& move, transfer_options options,
                       const Effect& effect) {
  const auto touching = move.touching();
  touched_memory touched;
  touched.add(move.destination, move.destination_bytes, true);
  touched.add(move.source, move.source_bytes, false);
  if (host_does_it(on, touched, options, touching.nbytes)) {
    return directly(on, touched, options, effect);
  }
  return carry_out(on, std::make_shared<plain_effect<Effect>>(touching, effect),
                   std::move(options));
}

// Combines two operations into one, the second ordered after the first: `first(options)` and
// `second(options)` submit them. What the caller keeps alive lives until both have ended. If the
// second is refused while the first is in flight, the event of both fails once the first has ended.
template <class First, class Second>
submitted one_after_other(transfer_options options, const First& first, const Second& second) {
  const auto kept = std::make_shared<std::vector<owner>>(std::move(options.owners));
  const bool blocking = options.blocking;
  transfer_options behind;
  behind.blocking = blocking;
  behind.owners.push_back(owner_of(kept));
  behind.after.reserve(1);
  options.owners.clear();
  part_failure failure;
  failure.keep(kept);
  submitted begun = first(std::move(options));
  ISTHMUS_TRY(begun);
  if (*begun) {
    behind.after.push_back(*begun);
  }
  submitted ended = without_throwing([&] { return second(std::move(behind)); });
  if (!ended && *begun) {
    return failure.after(**begun, ended.take_error());
  }
  return ended;
}

}  // namespace isthmus
