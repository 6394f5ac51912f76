// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pending transfers of a unified buffer, indexed by their bytes and by their queue. Not
// thread-safe: the buffer's lock protects the index.
//
// With n transfers each function takes O(log n), plus the number of its results. Transfers on one
// queue complete in order, so only the first of each queue has to be polled.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/span_index.hpp"

namespace isthmus {

struct InflightTransfer {
  // Serial number of the queue, then the number of transfers created before. Transfers without a
  // queue have serial number 0 and complete in any order.
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  Ref<Event> event;
  RangeSet ranges;  // not empty
  bool to_device = false;
  // Separate memory of a download, with the ranges one after the other, until the bytes may be
  // published. Null if the download writes to the host copy directly.
  std::shared_ptr<std::byte> block{};
  RangeSet outdated{};        // written by the device or by a later upload since this one began
  bool is_forgotten = false;  // only the transfer's event reports its failure
  Key key{};

  [[nodiscard]] ByteRange span() const noexcept { return ranges.span(); }
  [[nodiscard]] std::uint64_t queue_serial() const noexcept { return key.first; }
  [[nodiscard]] bool is_before(const InflightTransfer& other) const noexcept {
    return key.second < other.key.second;
  }
};

class InflightTransfers {
  using ByQueue = std::map<InflightTransfer::Key, InflightTransfer>;
  using BySpan = SpanIndex<InflightTransfer::Key, InflightTransfer>;

 public:
  using iterator = ByQueue::iterator;

  // A transfer that is not submitted yet, with all memory that `add` needs after the submission.
  class Entry {
   public:
    [[nodiscard]] InflightTransfer& operator*() noexcept { return node_.mapped(); }
    [[nodiscard]] InflightTransfer* operator->() noexcept { return &node_.mapped(); }

   private:
    friend class InflightTransfers;
    ByQueue::node_type node_;
    BySpan::Seat span_entry_;
  };
  // Throws std::bad_alloc and then has no effect.
  [[nodiscard]] Entry make_entry(std::uint64_t queue_serial, bool to_device, RangeSet ranges);
  void add(Entry entry) noexcept;
  iterator erase(iterator position) noexcept;
  void erase(const InflightTransfer& transfer) noexcept { erase(transfers_.find(transfer.key)); }

  [[nodiscard]] bool empty() const noexcept { return transfers_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return transfers_.size(); }
  // Ordered by queue; transfers of one queue in the order in which they began.
  [[nodiscard]] iterator begin() noexcept { return transfers_.begin(); }
  [[nodiscard]] iterator end() noexcept { return transfers_.end(); }
  // Returns the next transfer that may have completed although `pending` has not.
  [[nodiscard]] iterator next_after(iterator pending) noexcept;

  // Returns the transfers in the given direction that copy bytes of `range`. May throw
  // std::bad_alloc.
  [[nodiscard]] std::vector<InflightTransfer*> overlapping(const ByteRange& range,
                                                           bool to_device) const;

 private:
  std::uint64_t created_count_ = 0;
  ByQueue transfers_;
  BySpan by_span_;
};

}  // namespace isthmus
