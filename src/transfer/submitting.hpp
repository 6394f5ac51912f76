#pragma once
// What copies and fills have in common: who carries one out, and in whose order.

#include <algorithm>
#include <memory>

#include "backend/order_only.hpp"
#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/movement.hpp"
#include "transfer/ordering.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// The queue that an operation goes to, an open one; null if the host must do it, there being none.
[[nodiscard]] result<queue*> choose_queue(queue* asked, const endpoint& destination,
                                          const endpoint& source);

// The queue that carries an operation out: the chosen one where it reaches both sides, else one of
// the side that only its own context or device reaches, a new one if need be. Null: no queue
// reaches both, so by way of the host.
[[nodiscard]] result<ref<queue>> carrier(queue& chosen, const endpoint& destination,
                                         const endpoint& source);

// Whether the host does it: where the caller waits anyway, and for small ones that nothing stands
// before. Pre: the host can touch it all.
[[nodiscard]] bool host_does_it(queue* on, touched_memory& touched, const transfer_options& options,
                                std::size_t nbytes);

[[nodiscard]] bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                           std::size_t b_bytes) noexcept;

// INVALID_ARGUMENT.
[[nodiscard]] error refuse_overlap(std::size_t nbytes);

// What a caller pinned stays so till a driver has used it.
void keep_pinned(const queue& on, const endpoint& side, std::size_t nbytes,
                 std::vector<owner>& owners);
void keep_pinned(const queue& on, const movement& what, std::vector<owner>& owners);

// Of an operation that moves nothing: it has its place in the queue's order all the same, and fails
// as others do where an event that it waits for failed.
[[nodiscard]] submitted nothing_to_do(queue* on, transfer_options& options);

// What comes next on `on` comes after an operation that goes to another queue. Made before that one
// is submitted, since nothing may fail, nor wait, once it is in flight.
class later_work {
 public:
  later_work() = default;
  later_work(const later_work&) = delete;
  later_work& operator=(const later_work&) = delete;
  ~later_work();

  // Holds back what comes next on `on`. Pre: the device of `on` can wait for the host.
  [[nodiscard]] result<void> hold(queue& on);
  // It goes on when `ended` has. False if nothing is held back.
  bool release_after(event& ended) noexcept;

 private:
  class releasing;
  struct deleter {
    void operator()(releasing* unused) const noexcept;
  };
  std::unique_ptr<releasing, deleter> held_;
};

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

// Of what has no queue. Who does not wait for it does not wait for what comes before it either.
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

// Runs `effect` on this thread, in the order of `on`, once nothing in flight conflicts with it.
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

// Submits `call` to `carrying`, in the order of `on`, behind what conflicts with it, and makes it
// known.
template <class Call>
submitted on_queue(queue& on, queue& carrying, touched_memory& touched, transfer_options& options,
                   Call&& call) {
  const bool elsewhere = on.key() != carrying.key();
  touched.reserve();
  const bool may_wait = elsewhere && (!options.after.empty() || !on.quiet() || !touched.quiet());
  if (elsewhere) {
    auto before = on.fence({});
    if (!before) {
      return before;
    }
    options.after.push_back(order_only(*before));
  }
  touched.add_contents(options);
  ISTHMUS_TRY(touched.order_after_conflicts(&carrying, options.after));
  // Once all that it waits for is known: an adopted queue of the memory is one that it waits for as
  // far as it is now, and that may be `on`.
  later_work later;
  if (may_wait && !options.blocking && on.where().can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    ISTHMUS_TRY(later.hold(on));
  }
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
  if (elsewhere && !later.release_after(**given)) {
    undo not_half_done{[&] { let_end(std::span{&*given, 1}); }};
    const auto ended = order_only(*given);
    ISTHMUS_TRY(on.fence(std::span{&ended, 1}));
    not_half_done.dismiss();
  }
  return given;
}

}  // namespace isthmus
