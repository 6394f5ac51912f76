// SPDX-License-Identifier: Apache-2.0
#pragma once
// A set of bytes of an array: sorted ranges with gaps between them. Not thread-safe.

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/expects.hpp"

namespace isthmus {

struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t nbytes() const noexcept { return end - begin; }
  [[nodiscard]] bool overlaps(const ByteRange& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
  [[nodiscard]] bool covers(const ByteRange& other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  friend bool operator==(const ByteRange&, const ByteRange&) noexcept = default;
};

// Adding ranges in ascending order takes constant time each. Adding or removing another set
// searches for the ends of that set's span, visits the ranges of both sets between these ends, and
// moves the ranges that follow. Functions that add or remove may throw std::bad_alloc and then
// leave the set unchanged.
class RangeSet {
 public:
  RangeSet() noexcept = default;
  RangeSet(std::initializer_list<ByteRange> ranges);

  // Empty ranges are ignored.
  void add(const ByteRange& range);
  void add(const RangeSet& other);
  void remove(const RangeSet& other);
  void clear() noexcept { ranges_.clear(); }

  // A prepared change. Applying it needs no memory.
  class Change;
  [[nodiscard]] Change prepare_add(const RangeSet& other);
  [[nodiscard]] Change prepare_remove(const RangeSet& other);
  // `change` was prepared by this set, which has not changed since.
  void apply(const Change& change) noexcept;

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] std::size_t nbytes() const noexcept;
  // From the first byte to the last.
  [[nodiscard]] ByteRange span() const noexcept {
    ISTHMUS_EXPECTS(!empty());
    return {ranges_.front().begin, ranges_.back().end};
  }
  [[nodiscard]] bool overlaps(const ByteRange& range) const noexcept;
  // Whether this set contains all of `other`.
  [[nodiscard]] bool covers(const RangeSet& other) const noexcept;
  // The intersection.
  [[nodiscard]] RangeSet common(const RangeSet& other) const;
  // A copy in which gaps of up to `max_gap` bytes are filled.
  [[nodiscard]] RangeSet joined(std::size_t max_gap) const;

  [[nodiscard]] auto begin() const noexcept { return ranges_.begin(); }
  [[nodiscard]] auto end() const noexcept { return ranges_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return ranges_.size(); }
  friend bool operator==(const RangeSet&, const RangeSet&) noexcept = default;

 private:
  using Iterator = std::vector<ByteRange>::const_iterator;
  [[nodiscard]] std::pair<Iterator, Iterator> span_of(const RangeSet& other,
                                                      std::size_t max_gap) const noexcept;
  [[nodiscard]] Change prepare_replacement(Iterator first, Iterator last,
                                           std::vector<ByteRange> ranges);

  std::vector<ByteRange> ranges_;  // no range is empty or touches the next one
};

class RangeSet::Change {
  friend class RangeSet;
  // `count` ranges of the set, from index `first`, are replaced by `replacement`.
  std::ptrdiff_t first = 0;
  std::ptrdiff_t count = 0;
  std::vector<ByteRange> replacement;
};

}  // namespace isthmus
