// SPDX-License-Identifier: Apache-2.0
#pragma once
// A set of bytes of an array: sorted ranges with gaps between them. Not thread-safe.

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace isthmus {

struct byte_range {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t nbytes() const noexcept { return end - begin; }
  [[nodiscard]] bool overlaps(const byte_range& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
  [[nodiscard]] bool covers(const byte_range& other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  friend bool operator==(const byte_range&, const byte_range&) noexcept = default;
};

// Adding ranges in ascending order costs a constant each. Combining two sets searches for where the
// smaller one begins and ends, visits the ranges of both in between and moves those after it.
// Functions that add or remove may throw std::bad_alloc and then leave the set unchanged.
class range_set {
 public:
  range_set() noexcept = default;
  range_set(std::initializer_list<byte_range> ranges);

  // Empty ranges are ignored.
  void add(const byte_range& range);
  void add(const range_set& others);
  void remove(const range_set& others);
  void clear() noexcept { ranges_.clear(); }

  // A prepared change. Applying it needs no memory.
  class change;
  [[nodiscard]] change adding(const range_set& others);
  [[nodiscard]] change removing(const range_set& others);
  // Pre: `prepared` was made by this set, which has not changed since.
  void apply(const change& prepared) noexcept;

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] std::size_t nbytes() const noexcept;
  // From the first byte to the last. Pre: not empty.
  [[nodiscard]] byte_range span() const noexcept {
    return {ranges_.front().begin, ranges_.back().end};
  }
  [[nodiscard]] bool overlaps(const byte_range& range) const noexcept;
  // Whether this set contains all of `others`.
  [[nodiscard]] bool covers(const range_set& others) const noexcept;
  // The intersection.
  [[nodiscard]] range_set common(const range_set& other) const;
  // A copy in which gaps of up to `most_gap` bytes are filled.
  [[nodiscard]] range_set joined(std::size_t most_gap) const;

  [[nodiscard]] auto begin() const noexcept { return ranges_.begin(); }
  [[nodiscard]] auto end() const noexcept { return ranges_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return ranges_.size(); }
  friend bool operator==(const range_set&, const range_set&) noexcept = default;

 private:
  using place = std::vector<byte_range>::const_iterator;
  [[nodiscard]] std::pair<place, place> span_of(const range_set& others,
                                                std::size_t touching) const noexcept;
  [[nodiscard]] change prepare(place first, place last, std::vector<byte_range> by);

  std::vector<byte_range> ranges_;  // no range is empty or touches the next one
};

class range_set::change {
  friend class range_set;
  // `count` ranges of the set, from index `first`, are replaced by `by`.
  std::ptrdiff_t first = 0;
  std::ptrdiff_t count = 0;
  std::vector<byte_range> by;
};

}  // namespace isthmus
