#include "unified/flight_list.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace isthmus {

flight_list::place flight_list::place_of(const flight& of) noexcept {
  const auto all = of.span();
  return {std::bit_width(all.nbytes()), all.begin, of.name};
}

flight_list::seat flight_list::make(std::uint64_t on, bool to_device, range_set ranges) {
  const flight::key name{on, made_};
  in_turn turns;
  auto& made = turns[name];
  made.ranges = std::move(ranges);
  made.to_device = to_device;
  made.name = name;
  in_place places;
  places.emplace(place_of(made), &made);
  seat ready;
  ready.turn_ = turns.extract(turns.begin());
  ready.place_ = places.extract(places.begin());
  ++made_;
  return ready;
}

void flight_list::add(seat made) noexcept {
  turns_.insert(std::move(made.turn_));
  places_.insert(std::move(made.place_));
}

flight_list::iterator flight_list::erase(iterator gone) noexcept {
  places_.erase(place_of(gone->second));
  return turns_.erase(gone);
}

flight_list::iterator flight_list::next_after(iterator pending) noexcept {
  const auto on = pending->second.on();
  return on == 0 ? std::next(pending)
                 : turns_.upper_bound({on, std::numeric_limits<std::uint64_t>::max()});
}

// Of a length one begins less than its longest before the range.
std::vector<flight*> flight_list::of(const byte_range& range, bool to_device) const {
  std::vector<flight*> found;
  for (auto each = places_.begin(); each != places_.end();) {
    const int digits = std::get<0>(each->first);
    const auto longest = std::size_t{1} << std::min(digits, 63);
    const auto from = range.begin - std::min(range.begin, longest);
    each = places_.lower_bound({digits, from, {}});
    for (; each != places_.end() && std::get<0>(each->first) == digits &&
           std::get<1>(each->first) < range.end;
         ++each) {
      auto& one = *each->second;
      if (one.to_device == to_device && one.ranges.overlaps(range)) {
        found.push_back(&one);
      }
    }
    each = places_.lower_bound({digits + 1, 0, {}});
  }
  return found;
}

}  // namespace isthmus
