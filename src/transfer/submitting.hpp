// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions shared by copies and fills: they choose the queue or thread that executes an operation,
// and order it in a queue. Thread-safe.

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/partial_failure.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "transfer/copy_plan.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"
#include "transfer/transfer_options.hpp"

namespace isthmus {

// Returns the queue in whose order the operation runs. Null if neither the caller nor an endpoint
// provides one; the host must then execute the operation. Errors: WRONG_CONTEXT, CLOSED.
[[nodiscard]] Result<Queue*> choose_queue(Queue* requested, const Endpoint& destination,
                                          const Endpoint& source);

// Returns the queue that executes the operation: `chosen` if it can access both sides, else a
// preferred queue of an endpoint that can, else a new queue. Null if no queue can access both
// sides, so that the copy must go through the host.
[[nodiscard]] Result<Ref<Queue>> execution_queue_for(Queue& chosen, const Endpoint& destination,
                                                     const Endpoint& source);

// Whether the host executes the operation: if the call blocks anyway, or if the operation is small
// and nothing pending is ordered before it. The host can access both sides.
[[nodiscard]] bool host_executes(Queue* queue, TouchedMemory& touched,
                                 const TransferOptions& options, std::size_t nbytes);

[[nodiscard]] bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                           std::size_t b_bytes) noexcept;

// Returns INVALID_ARGUMENT for a copy of `nbytes` whose source and destination overlap.
[[nodiscard]] Error overlap_error(std::size_t nbytes);

// If the endpoint is pinned memory of the caller, adds an owner to `owners` that keeps it
// registered until the driver has used it.
void keep_pinned(const Queue& queue, const Endpoint& endpoint, std::size_t nbytes,
                 std::vector<Owner>& owners);
void keep_pinned(const Queue& queue, const CopyPlan& plan, std::vector<Owner>& owners);

// Submits an operation that copies nothing. It is ordered in the queue like any other and fails if
// an event that it depends on has failed.
[[nodiscard]] Submitted submit_no_op(Queue* queue, TransferOptions& options);

// Returns `call()`, or an error if it throws std::bad_alloc.
template <class Call>
Submitted without_throwing(const Call& call) noexcept try {
  return call();
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

template <class Effect>
class PlainEffect final : public HostDriven {
 public:
  explicit PlainEffect(Effect effect) : effect_{std::move(effect)} {}
  PlainEffect(const CopyPlan& plan, Effect effect) : HostDriven{plan}, effect_{std::move(effect)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    effect_();
    return {};
  }

 private:
  Effect effect_;
};

// Executes `effect` after `options.after`, without ordering it on any queue. If the call does not
// block and a dependency is pending, a library thread waits for the dependencies and executes it.
template <class Effect>
Submitted run_without_queue(TransferOptions& options, const Effect& effect) {
  const auto is_pending = [](const Ref<Event>& each) { return each->pending(); };
  if (!options.blocking && std::ranges::any_of(options.after, is_pending)) {
    return carry_out(nullptr, std::make_shared<PlainEffect<Effect>>(effect), std::move(options));
  }
  ISTHMUS_TRY(wait_for_all(options.after));
  effect();
  return options.blocking ? Ref<Event>{} : completed_event();
}

// Runs `effect` on this thread, in the order of `queue` and after all conflicting operations in
// flight.
template <class Effect>
Submitted run_on_host(Queue* queue, TouchedMemory& touched, TransferOptions& options,
                      Effect&& effect) {
  if (queue == nullptr) {
    return run_without_queue(options, effect);
  }
  touched.add_contents(options);
  std::vector<Ref<Event>> conflicts;
  touched.collect(nullptr, conflicts);
  ISTHMUS_TRY(touched.collect_queues(queue, conflicts));
  ISTHMUS_TRY(wait_for_all(options.after));
  ISTHMUS_TRY(wait_until_ended(conflicts, std::nullopt));
  effect();
  return options.blocking ? Ref<Event>{} : completed_event();
}

// Submits `call` to `execution_queue`, in the order of `queue` and after conflicting operations,
// and publishes it. All steps that may fail come before the submission, with one exception: if
// `queue` is another queue whose handle was exported, the insertion into its order may fail. The
// operation then fails with that error.
template <class Call>
Submitted submit_on_queue(Queue& queue, Queue& execution_queue, TouchedMemory& touched,
                          TransferOptions& options, Call&& call) {
  const bool is_other_queue = queue.key() != execution_queue.key();
  touched.reserve();
  std::optional<PartialFailure> order_failure;
  if (is_other_queue) {
    order_failure.emplace();
    auto fence = queue.fence({});
    ISTHMUS_TRY(fence);
    options.after.push_back(order_only(*fence));
    queue.reserve_off_queue();
  }
  Undo cancel_reservation{[&] {
    if (is_other_queue) {
      queue.cancel_off_queue();
    }
  }};
  touched.add_contents(options);
  ISTHMUS_TRY(touched.order_after_conflicts(&execution_queue, options.after));
  FunctionWait wait;
  if (options.blocking) {
    ISTHMUS_TRY(execution_queue.begin_wait(wait, options.after));
  }
  OwnerKeeper keeper{std::move(options.owners)};
  Submitted submitted = call(WaitList{options.after});
  if (!submitted) {
    return submitted;
  }
  touched.publish(&execution_queue, *submitted);
  keeper.keep_until(**submitted);
  if (options.blocking) {
    ISTHMUS_TRY((*submitted)->wait_unchecked(std::nullopt));
    return Ref<Event>{};
  }
  if (is_other_queue) {
    cancel_reservation.dismiss();
    if (auto error = queue.insert_off_queue(*submitted)) {
      return order_failure->after(**submitted, std::move(error));
    }
  }
  return submitted;
}

}  // namespace isthmus
