#pragma once
// Elements on their way between two places, no byte of which is on both sides.

#include "array/element_move.hpp"
#include "transfer/movement.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {

struct placed_move {
  const endpoint& destination;  // the lowest bytes
  const endpoint& source;
  // From the lowest to the highest.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  element_move what;

  [[nodiscard]] bool host_can_copy() const noexcept {
    return destination.host_can_copy() && source.host_can_copy();
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return what.elements() * what.widest(); }
  // As what it touches.
  [[nodiscard]] movement touching() const noexcept {
    return {destination, source, destination_bytes, source_bytes, nbytes()};
  }
};

// By the way that there is for it. `on`: chosen, see `choose_queue`.
[[nodiscard]] submitted move_apart(queue* on, const placed_move& move, transfer_options options);

// By way of the host's memory, in pieces, by several threads where a device has a ring. Pre: the
// host cannot touch both sides. Tests alone ask for small ones.
[[nodiscard]] submitted move_in_pieces(queue& on, const placed_move& move, transfer_options options,
                                       std::size_t most_piece_bytes = SIZE_MAX);

// By the host, which can copy on both sides: `effect()` is all of it, and owns what it needs.
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

// Two operations as one, the second behind the first: `first(options)` and `second(options)` submit
// them. What the caller keeps alive lives until both have ended. Where the second is refused while
// the first is in flight, the event of both fails once the first has ended.
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
