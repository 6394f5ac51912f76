// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common parts of copies and fills: which queue or thread executes one, and in whose order.
// Thread-safe.

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
#include "transfer/transfer.hpp"

namespace isthmus {

// The queue that orders the operation, not closed. Null if there is none, so the host must execute
// it. Errors: WRONG_CONTEXT, CLOSED.
[[nodiscard]] Result<Queue*> choose_queue(Queue* requested, const Endpoint& destination,
                                          const Endpoint& source);

// The queue that executes the operation: the chosen one if it reaches both sides, else one of the
// side that only its own context or device reaches, created if necessary. Null: no queue reaches
// both, so the copy goes through the host.
[[nodiscard]] Result<Ref<Queue>> execution_queue_for(Queue& chosen, const Endpoint& destination,
                                                     const Endpoint& source);

// Whether the host executes it: if the caller waits anyway, and for small operations that nothing
// is ordered before. Pre: the host can access both sides.
[[nodiscard]] bool host_executes(Queue* queue, TouchedMemory& touched,
                                 const TransferOptions& options, std::size_t nbytes);

[[nodiscard]] bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                           std::size_t b_bytes) noexcept;

// INVALID_ARGUMENT.
[[nodiscard]] Error overlap_error(std::size_t nbytes);

// Keeps memory that the caller pinned registered until the driver has used it.
void keep_pinned(const Queue& queue, const Endpoint& endpoint, std::size_t nbytes,
                 std::vector<Owner>& owners);
void keep_pinned(const Queue& queue, const CopyPlan& plan, std::vector<Owner>& owners);

// An operation that moves nothing. It is ordered in the queue like any other, and fails if an event
// that it depends on has failed.
[[nodiscard]] Submitted submit_no_op(Queue* queue, TransferOptions& options);

// `call()`, with std::bad_alloc returned as an error.
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

// An operation without a queue. If it does not block, it does not block for its dependencies
// either: a library thread waits for them.
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

// Runs `effect` on this thread, in the order of `queue`, after everything in flight that conflicts
// with it.
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
  wait_until_ended(conflicts);
  effect();
  return options.blocking ? Ref<Event>{} : completed_event();
}

// Submits `call` to `execution_queue`, in the order of `queue` and after what conflicts with it,
// and publishes it. Everything that may fail comes before the submission, except the entry into the
// order of `queue` if that is another queue whose handle was exported: the operation then ends with
// that error.
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
  Undo cancel_place{[&] {
    if (is_other_queue) {
      queue.cancel_off_queue();
    }
  }};
  touched.add_contents(options);
  ISTHMUS_TRY(touched.order_after_conflicts(&execution_queue, options.after));
  OwnerKeeper keeper{std::move(options.owners)};
  Submitted submitted = call(WaitList{options.after});
  if (!submitted) {
    return submitted;
  }
  touched.publish(&execution_queue, *submitted);
  keeper.keep_until(**submitted);
  if (options.blocking) {
    ISTHMUS_TRY((*submitted)->wait(std::nullopt));
    return Ref<Event>{};
  }
  if (is_other_queue) {
    cancel_place.dismiss();
    if (auto error = queue.insert_off_queue(*submitted)) {
      return order_failure->after(**submitted, std::move(error));
    }
  }
  return submitted;
}

}  // namespace isthmus
