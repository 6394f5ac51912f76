// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves of elements between two endpoints that do not overlap. Thread-safe.

#include "array/element_move.hpp"
#include "transfer/copy_plan.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {

struct EndpointMove {
  const Endpoint& destination;  // points to the lowest byte of its side, as does `source`
  const Endpoint& source;
  // Sizes of the address ranges of both sides.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  ElementMove element_move;

  [[nodiscard]] bool host_can_copy() const noexcept {
    return destination.host_can_copy() && source.host_can_copy();
  }
  [[nodiscard]] std::size_t nbytes() const noexcept {
    return element_move.elements() * element_move.widest();
  }
  // Returns a copy plan that describes the memory that the move accesses.
  [[nodiscard]] CopyPlan access_plan() const noexcept {
    return {destination, source, destination_bytes, source_bytes, nbytes()};
  }
};

// Executes the move in the cheapest way that its endpoints allow. `queue` is a result of
// `choose_queue`.
[[nodiscard]] Submitted move_disjoint(Queue* queue, const EndpointMove& move,
                                      TransferOptions options);

// Moves in chunks through host memory, with several threads if the device has a staging ring. For
// moves of which the host cannot access both sides. Only tests pass `max_chunk_bytes`.
[[nodiscard]] Submitted move_in_chunks(Queue& queue, const EndpointMove& move,
                                       TransferOptions options,
                                       std::size_t max_chunk_bytes = SIZE_MAX);

// Executes the move on the host by calling `effect()`. `effect` owns everything that it accesses
// except the memory of the endpoints, which it accesses only if `host_can_copy()` is true.
template <class Effect>
Submitted move_by_host(Queue* queue, const EndpointMove& move, TransferOptions options,
                       const Effect& effect) {
  const auto access_plan = move.access_plan();
  TouchedMemory touched;
  touched.add(move.destination, move.destination_bytes, true);
  touched.add(move.source, move.source_bytes, false);
  if (host_executes(queue, touched, options, access_plan.nbytes)) {
    return run_on_host(queue, touched, options, effect);
  }
  return carry_out(queue, std::make_shared<PlainEffect<Effect>>(access_plan, effect),
                   std::move(options));
}

// Combines two operations into one, the second ordered after the first: `first(options)` and
// `second(options)` submit them. The owners in `options` stay alive until both have completed. If
// the submission of the second fails while the first is in flight, the returned event fails when
// the first has completed.
template <class First, class Second>
Submitted submit_in_sequence(TransferOptions options, const First& first, const Second& second) {
  const auto owners = std::make_shared<std::vector<Owner>>(std::move(options.owners));
  const bool blocking = options.blocking;
  TransferOptions second_options;
  second_options.blocking = blocking;
  second_options.owners.push_back(owner_of(owners));
  second_options.after.reserve(1);
  options.owners.clear();
  PartialFailure failure;
  failure.keep_alive(owners);
  Submitted first_result = first(std::move(options));
  ISTHMUS_TRY(first_result);
  if (*first_result) {
    second_options.after.push_back(*first_result);
  }
  Submitted second_result = without_throwing([&] { return second(std::move(second_options)); });
  if (!second_result && *first_result) {
    return failure.after(**first_result, second_result.take_error());
  }
  return second_result;
}

}  // namespace isthmus
