// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common parts of copies and fills: which queue or thread executes one, and in whose order.

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/part_failure.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "transfer/copy_plan.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// The queue that orders the operation, not closed. Null if there is none, so the host must execute
// it. Errors: WRONG_CONTEXT, CLOSED.
[[nodiscard]] Result<Queue*> choose_queue(Queue* asked, const Endpoint& destination,
                                          const Endpoint& source);

// The queue that executes the operation: the chosen one if it reaches both sides, else one of the
// side that only its own context or device reaches, created if necessary. Null: no queue reaches
// both, so the copy goes through the host.
[[nodiscard]] Result<Ref<Queue>> carrier(Queue& chosen, const Endpoint& destination,
                                         const Endpoint& source);

// Whether the host executes it: if the caller waits anyway, and for small operations that nothing
// is ordered before. Pre: the host can access both sides.
[[nodiscard]] bool host_does_it(Queue* queue, TouchedMemory& touched,
                                const TransferOptions& options, std::size_t nbytes);

[[nodiscard]] bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                           std::size_t b_bytes) noexcept;

// INVALID_ARGUMENT.
[[nodiscard]] Error refuse_overlap(std::size_t nbytes);

// Keeps memory that the caller pinned registered until the driver has used it.
void keep_pinned(const Queue& queue, const Endpoint& side, std::size_t nbytes,
                 std::vector<Owner>& owners);
void keep_pinned(const Queue& queue, const CopyPlan& movement, std::vector<Owner>& owners);

// An operation that moves nothing. It is ordered in the queue like others, and fails if an event
// that it depends on has failed.
[[nodiscard]] Submitted nothing_to_do(Queue* queue, TransferOptions& options);

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
  PlainEffect(const CopyPlan& movement, Effect effect)
      : HostDriven{movement}, effect_{std::move(effect)} {}

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
Submitted in_no_queue(TransferOptions& options, const Effect& effect) {
  const auto pends = [](const Ref<Event>& each) { return each->pending(); };
  if (!options.blocking && std::ranges::any_of(options.after, pends)) {
    return carry_out(nullptr, std::make_shared<PlainEffect<Effect>>(effect), std::move(options));
  }
  ISTHMUS_TRY(wait_for_all(options.after));
  effect();
  return options.blocking ? Ref<Event>{} : completed_event();
}

// Runs `effect` on this thread, in the order of `queue`, after everything in flight that conflicts
// with it.
template <class Effect>
Submitted directly(Queue* queue, TouchedMemory& touched, TransferOptions& options,
                   Effect&& effect) {
  if (queue == nullptr) {
    return in_no_queue(options, effect);
  }
  touched.add_contents(options);
  std::vector<Ref<Event>> before;
  touched.collect(nullptr, before);
  ISTHMUS_TRY(touched.collect_queues(queue, before));
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  effect();
  return options.blocking ? Ref<Event>{} : completed_event();
}

// Submits `call` to `carrying`, in the order of `queue` and after what conflicts with it, and
// publishes it. Everything that may fail comes before the submission, except the entry into the
// order of `queue` if that is another queue whose handle was exported: the operation then ends with
// that error.
template <class Call>
Submitted on_queue(Queue& queue, Queue& carrying, TouchedMemory& touched, TransferOptions& options,
                   Call&& call) {
  const bool elsewhere = queue.key() != carrying.key();
  touched.reserve();
  std::optional<PartFailure> without_order;
  if (elsewhere) {
    without_order.emplace();
    auto before = queue.fence({});
    ISTHMUS_TRY(before);
    options.after.push_back(order_only(*before));
    queue.reserve_place();
  }
  Undo no_place{[&] {
    if (elsewhere) {
      queue.give_up_place();
    }
  }};
  touched.add_contents(options);
  ISTHMUS_TRY(touched.order_after_conflicts(&carrying, options.after));
  OwnerKeeper keeper{std::move(options.owners)};
  Submitted given = call(WaitList{options.after});
  if (!given) {
    return given;
  }
  touched.publish(&carrying, *given);
  keeper.until(**given);
  if (options.blocking) {
    ISTHMUS_TRY((*given)->wait(std::nullopt));
    return Ref<Event>{};
  }
  if (elsewhere) {
    no_place.dismiss();
    if (auto refused = queue.take_place(*given)) {
      return without_order->after(**given, std::move(refused));
    }
  }
  return given;
}

}  // namespace isthmus
