#include "transfer/gathered.hpp"

#include "backend/queue.hpp"
#include "core/bytes.hpp"
#include "core/undo.hpp"
#include "memory/pins.hpp"
#include "transfer/ordering.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

// No part of it is pinned: a device may be writing what is.
bool is_plain(const queue& on, const endpoint& side, std::size_t nbytes) {
  return !side.memory && !(process_pins().any() && hold_pinned(on, side.pointer, nbytes));
}

bool is_worth_it(const queue& on, const movement& what) {
  if (!what.is_one_run() || what.nbytes > gather_slots::k_most_bytes ||
      what.destination.host_can_touch() || !is_plain(on, what.source, what.nbytes)) {
    return false;
  }
  const auto* const first = what.source.pointer;
  return what.destination.memory->where().copies_better_gathered(first, first + what.nbytes - 1,
                                                                 what.nbytes);
}

}  // namespace

std::optional<submitted> copy_gathered(queue& on, const movement& what, transfer_options& options) {
  if (!is_worth_it(on, what)) {
    return std::nullopt;
  }
  touched_memory touched;
  touched.add(what.destination, what.destination_bytes, true);
  auto after = options.after;
  touched.collect(&on, after);
  if (auto asked = touched.collect_lent(&on, after); !asked) {
    return asked.take_error();
  }
  auto& slots = staging_ring::of(what.destination.memory->where()).small();
  const auto by_way_of = on.takes_at_once(after) ? slots.take(what.nbytes) : gather_slots::slot{};
  if (by_way_of.memory == nullptr) {
    return std::nullopt;
  }
  undo unused{[&] { slots.give_back(by_way_of); }};
  owner_keeper keeper{std::move(options.owners)};
  copy_bytes(by_way_of.memory, what.source.pointer, what.nbytes);
  submitted given = on.copy(what.destination.pointer, by_way_of.memory, what.nbytes, after);
  if (!given) {
    return given;
  }
  unused.dismiss();
  slots.keep_till(by_way_of, *given);
  touched.publish(&on, *given);
  keeper.until(**given);
  return given;
}

}  // namespace isthmus
