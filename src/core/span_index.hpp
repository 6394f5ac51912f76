// SPDX-License-Identifier: Apache-2.0
#pragma once
// An index of items by the byte range that they span. A search among n items takes O(log n) plus
// the items found.
//
// Items are sorted by the beginning of their span, separately for each bit width of their length.
// So a long item does not widen the search among short ones.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/expects.hpp"
#include "core/range_set.hpp"

namespace isthmus {

// `Key` distinguishes items that span the same bytes. Items are not owned. Not thread-safe.
template <class Key, class Item>
class SpanIndex {
  // The bit width of the length, the beginning, and the key.
  using Position = std::tuple<int, std::size_t, Key>;
  using ByRange = std::map<Position, Item*>;

 public:
  // A preallocated entry for an item that is not in the index: adding it needs no memory.
  using Seat = typename ByRange::node_type;

  // Throws std::bad_alloc.
  [[nodiscard]] static Seat make_entry(const ByteRange& span, const Key& key, Item& item) {
    ByRange temporary;
    temporary.emplace(key_of(span, key), &item);
    return temporary.extract(temporary.begin());
  }
  // No item with this span may have the same key.
  void add(Seat entry, const ByteRange& span, const Key& key) noexcept {
    ISTHMUS_EXPECTS(!entry.empty());
    entry.key() = key_of(span, key);
    ISTHMUS_EXPECTS_SLOW(!entries_.contains(entry.key()));
    entries_.insert(std::move(entry));
  }
  // Removes an item that was added with this span and key.
  [[nodiscard]] Seat extract(const ByteRange& span, const Key& key) noexcept {
    return entries_.extract(key_of(span, key));
  }
  // Calls visit(item) for each item whose span overlaps the range, and for some items that lie
  // before the range, which the caller must skip. `visit` must not change the index.
  template <class Visit>
  void visit_near(const ByteRange& range, Visit&& visit) const {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const int bit_width = std::get<0>(entry->first);
      // Items of this bit width are shorter than `max_length`. So an item that overlaps the range
      // begins less than `max_length` bytes before it.
      const auto max_length = bit_width < k_max_digits ? std::size_t{1} << bit_width : range.begin;
      const auto min_begin = range.begin - std::min(range.begin, max_length);
      entry = entries_.lower_bound({bit_width, min_begin, {}});
      for (; entry != entries_.end() && std::get<0>(entry->first) == bit_width &&
             std::get<1>(entry->first) < range.end;
           ++entry) {
        visit(*entry->second);
      }
      entry = entries_.lower_bound({bit_width + 1, 0, {}});
    }
  }

 private:
  static constexpr int k_max_digits = std::numeric_limits<std::size_t>::digits;

  [[nodiscard]] static Position key_of(const ByteRange& span, const Key& key) noexcept {
    return {std::bit_width(span.nbytes()), span.begin, key};
  }

  ByRange entries_;
};

}  // namespace isthmus
