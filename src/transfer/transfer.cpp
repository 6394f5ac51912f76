#include "transfer/transfer.hpp"

#include <algorithm>
#include <memory>

#include "backend/queue.hpp"
#include "memory/pins.hpp"
#include "memory/result_memory.hpp"
#include "os/virtual_memory.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"
#include "transfer/pageable.hpp"
#include "transfer/staged.hpp"

namespace isthmus {
namespace {

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

// The queue that an operation goes to, an open one; null if the host must do it, there being none.
result<queue*> choose_queue(queue* asked, const endpoint& destination, const endpoint& source) {
  const bool plain = !destination.memory && !source.memory;
  if (asked == nullptr) {
    asked = destination.memory ? destination.preferred : source.preferred;
  } else if (!plain && !destination.in_context_of(*asked) && !source.in_context_of(*asked)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue of {} belongs to another context than the memory: use a queue of the "
                "destination's or the source's context",
                asked->where().properties().filter);
  }
  if (asked != nullptr && asked->closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                asked->where().properties().filter);
  }
  return asked;
}

// The queue that carries an operation out: the chosen one where it reaches both sides, else one of
// the side that only its own context reaches. Null: by way of the host.
queue* carrier(queue& chosen, const endpoint& destination, const endpoint& source) {
  const auto reaches = [](const queue& on, const endpoint& side) {
    return side.host_can_touch() || side.in_context_of(on);
  };
  for (queue* candidate : {&chosen, destination.preferred, source.preferred}) {
    if (candidate != nullptr && reaches(*candidate, destination) && reaches(*candidate, source)) {
      return candidate;
    }
  }
  return nullptr;
}

template <class Effect>
class plain_effect final : public host_driven {
 public:
  explicit plain_effect(Effect effect) : effect_{std::move(effect)} {}

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
  std::vector<ref<event>> before;
  touched.collect(nullptr, before);
  ISTHMUS_TRY(touched.collect_queues(on, before));
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  effect();
  return options.blocking ? ref<event>{} : completed_event();
}

// Handing less than this to a queue costs more than doing it.
constexpr std::size_t k_inline_bytes = std::size_t{256} << 10;

// Whether the host does it: where the caller waits anyway, and for small ones that nothing stands
// before. Pre: the host can touch it all.
bool host_does_it(queue* on, touched_memory& touched, const transfer_options& options,
                  std::size_t nbytes) {
  if (on == nullptr) {
    return true;
  }
  return options.blocking ||
         (nbytes <= k_inline_bytes && options.after.empty() && on->quiet() && touched.quiet());
}

// Submits `call` to `carrying`, in the order of `on`, behind what conflicts with it, and makes it
// known.
template <class Call>
submitted on_queue(queue& on, queue& carrying, touched_memory& touched, transfer_options& options,
                   Call&& call) {
  const bool elsewhere = on.key() != carrying.key();
  if (elsewhere) {
    auto before = on.fence({});
    if (!before) {
      return before;
    }
    options.after.push_back(*std::move(before));
  }
  touched.collect(&carrying, options.after);
  ISTHMUS_TRY(touched.collect_lent(&carrying, options.after));
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
    if (auto gate = on.fence(std::span{&*given, 1}); !gate) {
      let_end(std::span{&*given, 1});  // nothing is half done
      return gate.take_error();
    }
  }
  return given;
}

// What a caller pinned stays so till a driver has copied it.
void keep_pinned(const queue& on, const endpoint& side, std::size_t nbytes,
                 std::vector<owner>& owners) {
  if (!side.memory && process_pins().any()) {
    owners.push_back(hold_pinned(on, side.pointer, nbytes));
  }
}

// Nothing to move, but what it should wait for still is.
submitted nothing_to_do(queue* on, transfer_options& options) {
  if (options.blocking || on == nullptr) {
    return in_no_queue(options, [] {});
  }
  if (options.after.empty()) {
    return completed_event();
  }
  owner_keeper keeper{std::move(options.owners)};
  auto ended = on->fence(options.after);
  if (ended) {
    keeper.until(**ended);
  }
  return ended;
}

error refuse_overlap(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "source and destination of a copy of {} overlap: copy by way of another buffer",
              describe_bytes(nbytes));
}

// Rows of one pitch may lie between each other's, as two column blocks of one matrix do.
bool rows_overlap(const endpoint& destination, const endpoint& source, const pitched& shape) {
  const auto to_bytes = shape.extent(shape.destination_pitch);
  const auto from_bytes = shape.extent(shape.source_pitch);
  if (!overlap(destination.pointer, to_bytes, source.pointer, from_bytes)) {
    return false;
  }
  if (shape.destination_pitch != shape.source_pitch || shape.height == 1) {
    return true;
  }
  const auto pitch = shape.source_pitch;
  const auto to = address(destination.pointer);
  const auto from = address(source.pointer);
  const auto apart = (to > from ? to - from : from - to) % pitch;  // the test is symmetric
  return apart < shape.width || pitch - apart < shape.width;
}

// One row where the rows follow each other without a gap.
pitched simplest(const pitched& shape) {
  if (shape.destination_pitch != shape.width || shape.source_pitch != shape.width) {
    return shape;
  }
  const auto nbytes = shape.width * shape.height;
  return {nbytes, nbytes, nbytes, 1};
}

submitted carry_rows(queue& carrying, const copy_2d_shape& rows, wait_list after) {
  return rows.height == 1 ? carrying.copy(rows.destination, rows.source, rows.width, after)
                          : carrying.copy_2d(rows, after);
}

}  // namespace

submitted copy(queue* asked, const endpoint& destination, const endpoint& source,
               std::size_t nbytes, transfer_options options) {
  return copy_2d(asked, destination, source, {nbytes, nbytes, nbytes, 1}, std::move(options));
}

submitted copy_2d(queue* asked, const endpoint& destination, const endpoint& source,
                  const pitched& wanted, transfer_options options) {
  auto chosen = choose_queue(asked, destination, source);
  if (!chosen) {
    return chosen.take_error();
  }
  queue* on = *chosen;
  const auto shape = simplest(wanted);
  if (shape.width == 0 || shape.height == 0) {
    return nothing_to_do(on, options);
  }
  if (rows_overlap(destination, source, shape)) {
    return refuse_overlap(shape.width * shape.height);
  }
  touched_memory touched;
  touched.add(destination, shape.extent(shape.destination_pitch), true);
  touched.add(source, shape.extent(shape.source_pitch), false);
  const copy_2d_shape rows{destination.pointer, shape.destination_pitch,
                           source.pointer,      shape.source_pitch,
                           shape.width,         shape.height};
  const bool is_fresh = !destination.memory && take_untouched_result(destination.pointer);
  const bool both_touchable = destination.host_can_touch() && source.host_can_touch();
  const bool on_host =
      both_touchable && host_does_it(on, touched, options, shape.width * shape.height);
  auto* const carrying = on_host ? nullptr : carrier(*on, destination, source);
  if (carrying != nullptr && is_better_staged(*on, destination, source, shape, options.blocking)) {
    return copy_pageable(*on, destination, source, shape, is_fresh, std::move(options));
  }
  if (is_fresh) {
    os::populate_pages(destination.pointer, shape.extent(shape.destination_pitch));
  }
  if (on_host) {
    return directly(on, touched, options, [rows] { copy_rows(rows); });
  }
  if (carrying != nullptr) {
    keep_pinned(*carrying, destination, shape.extent(shape.destination_pitch), options.owners);
    keep_pinned(*carrying, source, shape.extent(shape.source_pitch), options.owners);
    return on_queue(*on, *carrying, touched, options,
                    [&](wait_list after) { return carry_rows(*carrying, rows, after); });
  }
  return copy_staged(*on, destination, source, shape, std::move(options));
}

submitted fill(queue* asked, const endpoint& destination, const fill_pattern& pattern,
               std::size_t nbytes, transfer_options options) {
  auto chosen = choose_queue(asked, destination, destination);
  if (!chosen) {
    return chosen.take_error();
  }
  queue* on = *chosen;
  if (nbytes == 0) {
    return nothing_to_do(on, options);
  }
  touched_memory touched;
  touched.add(destination, nbytes, true);
  if (destination.host_can_touch() && host_does_it(on, touched, options, nbytes)) {
    return directly(on, touched, options, [to = destination.pointer, pattern, nbytes] {
      fill_bytes(to, pattern, nbytes);
    });
  }
  keep_pinned(*on, destination, nbytes, options.owners);
  return on_queue(*on, *on, touched, options, [&](wait_list after) {
    return on->fill(destination.pointer, pattern, nbytes, after);
  });
}

submitted prefetch(queue* asked, const endpoint& place, std::size_t nbytes, bool to_host,
                   transfer_options options) {
  auto chosen = choose_queue(asked, place, place);
  if (!chosen) {
    return chosen.take_error();
  }
  if (nbytes == 0) {
    return nothing_to_do(*chosen, options);
  }
  touched_memory touched;
  touched.add(place, nbytes, false);
  return on_queue(**chosen, **chosen, touched, options, [&](wait_list after) {
    return (*chosen)->prefetch(place.pointer, nbytes, to_host, after);
  });
}

submitted advise(queue* asked, const endpoint& place, std::size_t nbytes, std::uint32_t advice,
                 transfer_options options) {
  auto chosen = choose_queue(asked, place, place);
  if (!chosen) {
    return chosen.take_error();
  }
  if (nbytes == 0) {
    return nothing_to_do(*chosen, options);
  }
  touched_memory touched;
  touched.add(place, nbytes, false);
  return on_queue(**chosen, **chosen, touched, options, [&](wait_list after) {
    return (*chosen)->advise(place.pointer, nbytes, advice, after);
  });
}

}  // namespace isthmus
