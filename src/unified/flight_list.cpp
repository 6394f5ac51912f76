// SPDX-License-Identifier: Apache-2.0
#include "unified/flight_list.hpp"

#include <iterator>
#include <limits>
#include <utility>

namespace isthmus {

flight_list::seat flight_list::make(std::uint64_t on, bool to_device, range_set ranges) {
  const flight::key name{on, made_};
  in_turn turns;
  auto& made = turns[name];
  made.ranges = std::move(ranges);
  made.to_device = to_device;
  made.name = name;
  seat ready;
  ready.place_ = in_place::make(made.span(), name, made);
  ready.turn_ = turns.extract(turns.begin());
  ++made_;
  return ready;
}

void flight_list::add(seat made) noexcept {
  places_.add(std::move(made.place_), made->span(), made->name);
  turns_.insert(std::move(made.turn_));
}

flight_list::iterator flight_list::erase(iterator gone) noexcept {
  static_cast<void>(places_.extract(gone->second.span(), gone->second.name));
  return turns_.erase(gone);
}

flight_list::iterator flight_list::next_after(iterator pending) noexcept {
  const auto on = pending->second.on();
  return on == 0 ? std::next(pending)
                 : turns_.upper_bound({on, std::numeric_limits<std::uint64_t>::max()});
}

std::vector<flight*> flight_list::of(const byte_range& range, bool to_device) const {
  std::vector<flight*> found;
  places_.visit_near(range, [&](flight& each) {
    if (each.to_device == to_device && each.ranges.overlaps(range)) {
      found.push_back(&each);
    }
  });
  return found;
}

}  // namespace isthmus
