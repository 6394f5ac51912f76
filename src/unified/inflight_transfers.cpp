// SPDX-License-Identifier: Apache-2.0
#include "unified/inflight_transfers.hpp"

#include <iterator>
#include <limits>
#include <utility>

namespace isthmus {

InflightTransfers::Seat InflightTransfers::make(std::uint64_t queue_serial, bool to_device,
                                                RangeSet ranges) {
  const InflightTransfer::Key key{queue_serial, created_};
  InOrder nodes;
  auto& transfer = nodes[key];
  transfer.ranges = std::move(ranges);
  transfer.to_device = to_device;
  transfer.key = key;
  Seat seat;
  seat.span_entry_ = ByRange::make_entry(transfer.span(), key, transfer);
  seat.node_ = nodes.extract(nodes.begin());
  ++created_;
  return seat;
}

void InflightTransfers::add(Seat seat) noexcept {
  by_span_.add(std::move(seat.span_entry_), seat->span(), seat->key);
  transfers_.insert(std::move(seat.node_));
}

InflightTransfers::iterator InflightTransfers::erase(iterator position) noexcept {
  static_cast<void>(by_span_.extract(position->second.span(), position->second.key));
  return transfers_.erase(position);
}

InflightTransfers::iterator InflightTransfers::next_after(iterator pending) noexcept {
  const auto serial = pending->second.queue_serial();
  return serial == 0 ? std::next(pending)
                     : transfers_.upper_bound({serial, std::numeric_limits<std::uint64_t>::max()});
}

std::vector<InflightTransfer*> InflightTransfers::overlapping(const ByteRange& range,
                                                              bool to_device) const {
  std::vector<InflightTransfer*> found;
  by_span_.visit_near(range, [&](InflightTransfer& each) {
    if (each.to_device == to_device && each.ranges.overlaps(range)) {
      found.push_back(&each);
    }
  });
  return found;
}

}  // namespace isthmus
