// SPDX-License-Identifier: Apache-2.0
#include "unified/inflight_transfers.hpp"

#include <iterator>
#include <limits>
#include <utility>

#include "core/expects.hpp"

namespace isthmus {

InflightTransfers::Entry InflightTransfers::make_entry(std::uint64_t queue_serial, bool to_device,
                                                       RangeSet ranges) {
  const InflightTransfer::Key key{queue_serial, created_count_};
  ByQueue nodes;
  auto& transfer = nodes[key];
  transfer.ranges = std::move(ranges);
  transfer.to_device = to_device;
  transfer.key = key;
  Entry entry;
  entry.span_entry_ = BySpan::make_entry(transfer.span(), key, transfer);
  entry.node_ = nodes.extract(nodes.begin());
  ++created_count_;
  return entry;
}

void InflightTransfers::add(Entry entry) noexcept {
  ISTHMUS_EXPECTS(entry->event);
  by_span_.add(std::move(entry.span_entry_), entry->span(), entry->key);
  transfers_.insert(std::move(entry.node_));
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
  std::vector<InflightTransfer*> transfers;
  by_span_.visit_near(range, [&](InflightTransfer& transfer) {
    if (transfer.to_device == to_device && transfer.ranges.overlaps(range)) {
      transfers.push_back(&transfer);
    }
  });
  return transfers;
}

}  // namespace isthmus
