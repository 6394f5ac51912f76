// SPDX-License-Identifier: Apache-2.0
#pragma once
// An index of items by the byte range that they span. A search among n items takes O(log n) plus
// the items found.
//
// Items are sorted by their begin, separately for each power of two of their length. So a long item
// does not widen the search among short ones.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/range_set.hpp"

namespace isthmus {

// `Key` distinguishes items that span the same bytes. Items are not owned. Not thread-safe.
template <class Key, class Item>
class SpanIndex {
  // The bit width of the length, the begin, and the key.
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
  // Pre: no other item has this key.
  void add(Seat entry, const ByteRange& span, const Key& key) noexcept {
    entry.key() = key_of(span, key);
    entries_.insert(std::move(entry));
  }
  // Removes an item that was added with this span and key.
  [[nodiscard]] Seat extract(const ByteRange& span, const Key& key) noexcept {
    return entries_.extract(key_of(span, key));
  }
  // Calls visit(item) for each item whose span overlaps the range, and for some that lie before it,
  // which the caller must filter. `visit` must not change the index.
  template <class Visit>
  void visit_near(const ByteRange& range, Visit&& visit) const {
    for (auto each = entries_.begin(); each != entries_.end();) {
      const int digits = std::get<0>(each->first);
      // An overlapping item of this bit width begins less than the longest such length before the
      // range.
      const auto longest = digits < k_max_digits ? std::size_t{1} << digits : range.begin;
      const auto min_begin = range.begin - std::min(range.begin, longest);
      each = entries_.lower_bound({digits, min_begin, {}});
      for (; each != entries_.end() && std::get<0>(each->first) == digits &&
             std::get<1>(each->first) < range.end;
           ++each) {
        visit(*each->second);
      }
      each = entries_.lower_bound({digits + 1, 0, {}});
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
