// SPDX-License-Identifier: Apache-2.0
#include "unified/inflight_transfers.hpp"

#include <iterator>
#include <limits>
#include <utility>

namespace isthmus {

InflightTransfers::Seat InflightTransfers::make(std::uint64_t key, bool to_device,
                                                RangeSet ranges) {
  const InflightTransfer::Key name{key, made_};
  InTurn turns;
  auto& made = turns[name];
  made.ranges = std::move(ranges);
  made.to_device = to_device;
  made.name = name;
  Seat ready;
  ready.place_ = InPlace::make(made.span(), name, made);
  ready.turn_ = turns.extract(turns.begin());
  ++made_;
  return ready;
}

void InflightTransfers::add(Seat made) noexcept {
  places_.add(std::move(made.place_), made->span(), made->name);
  turns_.insert(std::move(made.turn_));
}

InflightTransfers::iterator InflightTransfers::erase(iterator gone) noexcept {
  static_cast<void>(places_.extract(gone->second.span(), gone->second.name));
  return turns_.erase(gone);
}

InflightTransfers::iterator InflightTransfers::next_after(iterator pending) noexcept {
  const auto on = pending->second.on();
  return on == 0 ? std::next(pending)
                 : turns_.upper_bound({on, std::numeric_limits<std::uint64_t>::max()});
}

std::vector<InflightTransfer*> InflightTransfers::of(const ByteRange& range, bool to_device) const {
  std::vector<InflightTransfer*> found;
  places_.visit_near(range, [&](InflightTransfer& each) {
    if (each.to_device == to_device && each.ranges.overlaps(range)) {
      found.push_back(&each);
    }
  });
  return found;
}

}  // namespace isthmus
