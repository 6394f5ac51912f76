// SPDX-License-Identifier: Apache-2.0
#include "transfer/submitting.hpp"

#include "memory/pins.hpp"

namespace isthmus {

Result<Queue*> choose_queue(Queue* asked, const Endpoint& destination, const Endpoint& source) {
  const bool plain = !destination.memory && !source.memory;
  if (asked == nullptr) {
    // An endpoint of 0 bytes has no memory, but its buffer's queue.
    const bool is_the_destinations = destination.memory || destination.preferred != nullptr;
    asked = is_the_destinations ? destination.preferred : source.preferred;
  } else if (!plain && !destination.in_context_of(*asked) && !source.in_context_of(*asked)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue of {} belongs to another context than the memory: use a queue of the "
                "destination's or the source's context",
                asked->device().properties().filter);
  }
  if (asked != nullptr && asked->closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                asked->device().properties().filter);
  }
  return asked;
}

Result<Ref<Queue>> carrier(Queue& chosen, const Endpoint& destination, const Endpoint& source) {
  for (Queue* candidate : {&chosen, destination.preferred, source.preferred}) {
    if (candidate != nullptr && !candidate->closed() && destination.reached_by(*candidate) &&
        source.reached_by(*candidate)) {
      return Ref<Queue>{candidate};
    }
  }
  const auto& one = *(destination.host_can_touch() ? source : destination).memory;
  const auto& other = *(source.host_can_touch() ? destination : source).memory;
  if (!one.context().is_same_as(other.context()) || &one.device() != &other.device()) {
    return Ref<Queue>{};
  }
  return one.context().create_queue(one.device());
}

namespace {

// Below this size submission to a queue costs more than the copy.
constexpr std::size_t k_inline_bytes = std::size_t{256} << 10;

}  // namespace

bool host_does_it(Queue* queue, TouchedMemory& touched, const TransferOptions& options,
                  std::size_t nbytes) {
  if (queue == nullptr) {
    return true;
  }
  return options.blocking ||
         (nbytes <= k_inline_bytes && options.after.empty() && queue->quiet() && touched.quiet());
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
             std::size_t b_bytes) noexcept {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

Error refuse_overlap(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "source and destination of a copy of {} overlap: copy through another buffer",
              describe_bytes(nbytes));
}

void keep_pinned(const Queue& queue, const Endpoint& side, std::size_t nbytes,
                 std::vector<Owner>& owners) {
  if (!side.memory && process_pins().any()) {
    owners.push_back(hold_pinned(queue, side.pointer, nbytes));
  }
}

void keep_pinned(const Queue& queue, const CopyPlan& movement, std::vector<Owner>& owners) {
  keep_pinned(queue, movement.destination, movement.destination_bytes, owners);
  keep_pinned(queue, movement.source, movement.source_bytes, owners);
}

Submitted nothing_to_do(Queue* queue, TransferOptions& options) {
  if (queue == nullptr) {
    return in_no_queue(options, [] {});
  }
  TouchedMemory nothing;
  if (options.blocking && !queue->is_default_stream()) {
    return directly(queue, nothing, options, [] {});
  }
  if (!options.blocking && options.after.empty() && !queue->has_external_work() && queue->quiet()) {
    return completed_event();
  }
  OwnerKeeper keeper{std::move(options.owners)};
  auto ended = queue->fence(options.after);
  ISTHMUS_TRY(ended);
  keeper.until(**ended);
  if (options.blocking) {
    ISTHMUS_TRY((*ended)->wait(std::nullopt));
    return Ref<Event>{};
  }
  return ended;
}

}  // namespace isthmus
