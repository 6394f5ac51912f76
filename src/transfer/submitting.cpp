// SPDX-License-Identifier: Apache-2.0
#include "transfer/submitting.hpp"

#include "core/sizes.hpp"
#include "memory/records/pins.hpp"

namespace isthmus {

Result<Queue*> choose_queue(Queue* requested, const Endpoint& destination, const Endpoint& source) {
  const bool plain = !destination.memory && !source.memory;
  if (requested == nullptr) {
    // An endpoint of 0 bytes has no memory, but `preferred` is the queue of its buffer.
    const bool use_destination = destination.memory || destination.preferred != nullptr;
    requested = use_destination ? destination.preferred : source.preferred;
  } else if (!plain && !destination.in_context_of(*requested) &&
             !source.in_context_of(*requested)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue of {} and the memory belong to different contexts: use a queue of the "
                "destination's or the source's context",
                requested->device().properties().filter);
  }
  if (requested != nullptr && requested->closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                requested->device().properties().filter);
  }
  return requested;
}

Result<Ref<Queue>> execution_queue_for(Queue& chosen, const Endpoint& destination,
                                       const Endpoint& source) {
  for (Queue* candidate : {&chosen, destination.preferred, source.preferred}) {
    if (candidate != nullptr && !candidate->closed() && destination.is_reachable_by(*candidate) &&
        source.is_reachable_by(*candidate)) {
      return Ref<Queue>{candidate};
    }
  }
  const auto& one = *(destination.host_can_touch() ? source : destination).memory;
  const auto& other = *(source.host_can_touch() ? destination : source).memory;
  if (!one.context().is_same_as(other.context()) || &one.device() != &other.device()) {
    return Ref<Queue>{};
  }
  return Queue::create(one.context(), one.device());
}

namespace {

// Up to this size the submission to a queue costs more than the copy.
constexpr std::size_t k_inline_bytes = std::size_t{256} << 10;

}  // namespace

bool host_executes(Queue* queue, TouchedMemory& touched, const TransferOptions& options,
                   std::size_t nbytes) {
  if (queue == nullptr) {
    return true;
  }
  return options.blocking || (nbytes <= k_inline_bytes && options.after.empty() &&
                              queue->is_known_idle() && touched.is_known_idle());
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
             std::size_t b_bytes) noexcept {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

Error overlap_error(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "source and destination of a copy of {} overlap: copy through another buffer",
              describe_bytes(nbytes));
}

void keep_pinned(const Queue& queue, const Endpoint& endpoint, std::size_t nbytes,
                 std::vector<Owner>& owners) {
  if (!endpoint.memory && process_pins().any()) {
    owners.push_back(hold_pinned(queue, endpoint.pointer, nbytes));
  }
}

void keep_pinned(const Queue& queue, const CopyPlan& plan, std::vector<Owner>& owners) {
  keep_pinned(queue, plan.destination, plan.destination_bytes, owners);
  keep_pinned(queue, plan.source, plan.source_bytes, owners);
}

Submitted submit_no_op(Queue* queue, TransferOptions& options) {
  if (queue == nullptr) {
    return run_without_queue(options, [] {});
  }
  TouchedMemory no_access;
  if (options.blocking && !queue->traits().is_default_stream) {
    return run_on_host(queue, no_access, options, [] {});
  }
  if (!options.blocking && options.after.empty() && !queue->has_external_work() &&
      queue->is_known_idle()) {
    return completed_event();
  }
  FunctionWait wait;
  if (options.blocking) {
    ISTHMUS_TRY(queue->begin_wait(wait, options.after));
  }
  OwnerKeeper keeper{std::move(options.owners)};
  auto fence = queue->fence(options.after);
  ISTHMUS_TRY(fence);
  keeper.keep_until(**fence);
  if (options.blocking) {
    ISTHMUS_TRY((*fence)->wait_unchecked(std::nullopt));
    return Ref<Event>{};
  }
  return fence;
}

}  // namespace isthmus
