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
#include "transfer/host_driven.hpp"
#include "transfer/movement.hpp"
#include "transfer/ordering.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// The queue that orders the operation, not closed. Null if there is none, so the host must execute
// it. Errors: WRONG_CONTEXT, CLOSED.
[[nodiscard]] result<queue*> choose_queue(queue* asked, const endpoint& destination,
                                          const endpoint& source);

// The queue that executes the operation: the chosen one if it reaches both sides, else one of the
// side that only its own context or device reaches, created if necessary. Null: no queue reaches
// both, so the copy goes through the host.
[[nodiscard]] result<ref<queue>> carrier(queue& chosen, const endpoint& destination,
                                         const endpoint& source);

// Whether the host executes it: if the caller waits anyway, and for small operations that nothing
// is ordered before. Pre: the host can access both sides.
[[nodiscard]] bool host_does_it(queue* on, touched_memory& touched, const transfer_options& options,
                                std::size_t nbytes);

[[nodiscard]] bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                           std::size_t b_bytes) noexcept;

// INVALID_ARGUMENT.
[[nodiscard]] error refuse_overlap(std::size_t nbytes);

// Keeps memory that the caller pinned registered until the driver has used it.
void keep_pinned(const queue& on, const endpoint& side, std::size_t nbytes,
                 std::vector<owner>& owners);
void keep_pinned(const queue& on, const movement& what, std::vector<owner>& owners);

// An operation that moves nothing. It is ordered in the queue like others, and fails if an event
// that it depends on has failed.
[[nodiscard]] submitted nothing_to_do(queue* on, transfer_options& options);

// `call()`, with std::bad_alloc returned as an error.
template <class Call>
submitted without_throwing(const Call& call) noexcept try {
  return call();
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

template <class Effect>
class plain_effect final : public host_driven {
 public:
  explicit plain_effect(Effect effect) : effect_{std::move(effect)} {}
  plain_effect(const movement& what, Effect effect)
      : host_driven{what}, effect_{std::move(effect)} {}

 protected:
  [[nodiscard]] result<void> move() override {
    effect_();
    return {};
  }

 private:
  Effect effect_;
};

// An operation without a queue. If it does not block, it does not block for its dependencies
// either: a library thread waits for them.
template <class Effect>
submitted in_no_queue(transfer_options& options, const Effect& effect) {
  const auto pends = [](const ref<event>& each) { return each->pending(); };
  if (!options.blocking && std::ranges::any_of(options.after, pends)) {
    return carry_out(nullptr, std::make_shared<plain_effect<Effect>>(effect), std::move(options));
  }
  ISTHMUS_TRY(wait_for_all(options.after));
  effect();
  return options.blocking ? ref<event>{} : completed_event();
}

// Runs `effect` on this thread, in the order of `on`, after everything in flight that conflicts
// with it.
template <class Effect>
submitted directly(queue* on, touched_memory& touched, transfer_options& options, Effect&& effect) {
  if (on == nullptr) {
    return in_no_queue(options, effect);
  }
  touched.add_contents(options);
  std::vector<ref<event>> before;
  touched.collect(nullptr, before);
  ISTHMUS_TRY(touched.collect_queues(on, before));
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  effect();
  return options.blocking ? ref<event>{} : completed_event();
}

// Submits `call` to `carrying`, in the order of `on` and after what conflicts with it, and
// publishes it. Everything that may fail comes before the submission, except the entry into the
// order of `on` if that is another queue whose handle was exported: the operation then ends with
// that error.
template <class Call>
submitted on_queue(queue& on, queue& carrying, touched_memory& touched, transfer_options& options,
                   Call&& call) {
  const bool elsewhere = on.key() != carrying.key();
  touched.reserve();
  std::optional<part_failure> without_order;
  if (elsewhere) {
    without_order.emplace();
    auto before = on.fence({});
    ISTHMUS_TRY(before);
    options.after.push_back(order_only(*before));
    on.reserve_place();
  }
  undo no_place{[&] {
    if (elsewhere) {
      on.give_up_place();
    }
  }};
  touched.add_contents(options);
  ISTHMUS_TRY(touched.order_after_conflicts(&carrying, options.after));
  owner_keeper keeper{std::move(options.owners)};
  submitted given = call(wait_list{options.after});
  if (!given) {
    return given;
  }
  touched.publish(&carrying, *given);
  keeper.until(**given);
  if (options.blocking) {
    ISTHMUS_TRY((*given)->wait(std::nullopt));
    return ref<event>{};
  }
  if (elsewhere) {
    no_place.dismiss();
    if (auto refused = on.take_place(*given)) {
      return without_order->after(**given, std::move(refused));
    }
  }
  return given;
}

}  // namespace isthmus
