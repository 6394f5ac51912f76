#include "transfer/slotted.hpp"

#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "memory/pins.hpp"
#include "os/virtual_memory.hpp"
#include "transfer/ordering.hpp"
#include "transfer/spinning_crew.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

// No part of it is pinned: a device may write what is.
bool is_plain(const queue& on, const endpoint& side, std::size_t nbytes) {
  return !side.memory && !(process_pins().any() && hold_pinned(on, side.pointer, nbytes));
}

bool is_better_slotted(const queue& on, const movement& what, const endpoint& plain,
                       const endpoint& there, bool to_read) {
  if (!what.is_one_run() || what.nbytes > pinned_slots::k_most_bytes || there.host_can_touch() ||
      !there.in_context_of(on) || !is_plain(on, plain, what.nbytes)) {
    return false;
  }
  const auto* const last = plain.pointer + what.nbytes - 1;
  return there.memory->where().copies_better_slotted(plain.pointer, last, what.nbytes, to_read);
}

pinned_slots& slots_of(const endpoint& there) {
  return staging_ring::of(there.memory->where()).small();
}

}  // namespace

std::optional<submitted> copy_gathered(queue& on, const movement& what, transfer_options& options) {
  const bool to_read = !options.blocking && options.waits_for_source;
  if (!is_better_slotted(on, what, what.source, what.destination, to_read)) {
    return std::nullopt;
  }
  touched_memory touched;
  touched.add(what.destination, what.destination_bytes, true);
  auto after = options.after;
  touched.collect(&on, after);
  if (auto asked = touched.collect_lent(&on, after); !asked) {
    return asked.take_error();
  }
  auto& slots = slots_of(what.destination);
  auto& crew = spinning_crew::only();
  const auto by_way_of = on.takes_at_once(after) ? slots.take(what.nbytes) : pinned_slots::slot{};
  if (by_way_of.memory == nullptr) {
    return std::nullopt;
  }
  undo unused{[&] { slots.give_back(by_way_of); }};
  owner_keeper keeper{std::move(options.owners)};
  crew.copy(by_way_of.memory, what.source.pointer, what.nbytes);
  submitted given = on.copy(what.destination.pointer, by_way_of.memory, what.nbytes, after);
  if (!given) {
    return given;
  }
  unused.dismiss();
  slots.keep_till(by_way_of, *given);
  touched.publish(&on, *given);
  keeper.until(**given);
  if (!options.blocking) {
    return given;
  }
  auto ended = (*given)->wait(std::nullopt);
  return ended ? submitted{ref<event>{}} : submitted{ended.take_error()};
}

std::optional<submitted> copy_scattered(queue& on, const movement& what,
                                        transfer_options& options) {
  if (!is_better_slotted(on, what, what.destination, what.source, true)) {
    return std::nullopt;
  }
  auto& slots = slots_of(what.source);
  auto& crew = spinning_crew::only();
  const auto by_way_of = slots.take(what.nbytes);
  if (by_way_of.memory == nullptr) {
    return std::nullopt;
  }
  const undo given_back{[&] { slots.give_back(by_way_of); }};
  touched_memory touched;
  touched.add(what.source, what.source_bytes, false);
  touched.collect(&on, options.after);
  if (auto asked = touched.collect_lent(&on, options.after); !asked) {
    return asked.take_error();
  }
  submitted given = on.copy(by_way_of.memory, what.source.pointer, what.nbytes, options.after);
  if (!given) {
    return given;
  }
  touched.publish(&on, *given);
  if (what.is_fresh) {
    os::populate_pages(what.destination.pointer, what.destination_bytes);
  }
  if (auto ended = (*given)->wait(std::nullopt); !ended) {
    return ended.take_error();
  }
  crew.copy(what.destination.pointer, by_way_of.memory, what.nbytes);
  return submitted{ref<event>{}};
}

}  // namespace isthmus
