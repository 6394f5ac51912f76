// SPDX-License-Identifier: Apache-2.0
#include "transfer/submitting.hpp"

#include "memory/pins.hpp"

namespace isthmus {

result<queue*> choose_queue(queue* asked, const endpoint& destination, const endpoint& source) {
  const bool plain = !destination.memory && !source.memory;
  if (asked == nullptr) {
    // An endpoint of 0 bytes has no memory, but its buffer's queue.
    const bool is_the_destinations = destination.memory || destination.preferred != nullptr;
    asked = is_the_destinations ? destination.preferred : source.preferred;
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

result<ref<queue>> carrier(queue& chosen, const endpoint& destination, const endpoint& source) {
  for (queue* candidate : {&chosen, destination.preferred, source.preferred}) {
    if (candidate != nullptr && !candidate->closed() && destination.reached_by(*candidate) &&
        source.reached_by(*candidate)) {
      return ref<queue>{candidate};
    }
  }
  const auto& one = *(destination.host_can_touch() ? source : destination).memory;
  const auto& other = *(source.host_can_touch() ? destination : source).memory;
  if (!one.home().is_same_as(other.home()) || &one.where() != &other.where()) {
    return ref<queue>{};
  }
  return one.home().create_queue(one.where());
}

namespace {

// Below this size submission to a queue costs more than the copy.
constexpr std::size_t k_inline_bytes = std::size_t{256} << 10;

}  // namespace

bool host_does_it(queue* on, touched_memory& touched, const transfer_options& options,
                  std::size_t nbytes) {
  if (on == nullptr) {
    return true;
  }
  return options.blocking ||
         (nbytes <= k_inline_bytes && options.after.empty() && on->quiet() && touched.quiet());
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
             std::size_t b_bytes) noexcept {
  return address(a) < address(b) + b_bytes && address(b) < address(a) + a_bytes;
}

error refuse_overlap(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "source and destination of a copy of {} overlap: copy through another buffer",
              describe_bytes(nbytes));
}

void keep_pinned(const queue& on, const endpoint& side, std::size_t nbytes,
                 std::vector<owner>& owners) {
  if (!side.memory && process_pins().any()) {
    owners.push_back(hold_pinned(on, side.pointer, nbytes));
  }
}

void keep_pinned(const queue& on, const movement& what, std::vector<owner>& owners) {
  keep_pinned(on, what.destination, what.destination_bytes, owners);
  keep_pinned(on, what.source, what.source_bytes, owners);
}

submitted nothing_to_do(queue* on, transfer_options& options) {
  if (on == nullptr) {
    return in_no_queue(options, [] {});
  }
  touched_memory nothing;
  if (options.blocking && !on->is_everybodys()) {
    return directly(on, nothing, options, [] {});
  }
  if (!options.blocking && options.after.empty() && !on->has_others_work() && on->quiet()) {
    return completed_event();
  }
  owner_keeper keeper{std::move(options.owners)};
  auto ended = on->fence(options.after);
  ISTHMUS_TRY(ended);
  keeper.until(**ended);
  if (options.blocking) {
    ISTHMUS_TRY((*ended)->wait(std::nullopt));
    return ref<event>{};
  }
  return ended;
}

}  // namespace isthmus
