// SPDX-License-Identifier: Apache-2.0
#include "core/range_set.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

namespace isthmus {
namespace {

void append(std::vector<ByteRange>& ranges, const ByteRange& range, std::size_t most_gap = 0) {
  if (range.begin >= range.end) {
    return;
  }
  if (!ranges.empty() && range.begin <= ranges.back().end + most_gap) {
    ranges.back().end = std::max(ranges.back().end, range.end);
  } else {
    ranges.push_back(range);
  }
}

// The first range of `all` that ends after `place`, and what follows it.
template <class Ranges>
auto first_behind(const Ranges& all, std::size_t place) noexcept {
  return std::partition_point(all.begin(), all.end(),
                              [&](const ByteRange& each) { return each.end <= place; });
}

bool begins_before(const ByteRange& one, const ByteRange& other) noexcept {
  return one.begin < other.begin;
}

}  // namespace

RangeSet::RangeSet(std::initializer_list<ByteRange> ranges) {
  for (const auto& each : ranges) {
    add(each);
  }
}

void RangeSet::add(const ByteRange& range) {
  if (ranges_.empty() || ranges_.back().begin <= range.begin) {
    append(ranges_, range);
  } else {
    RangeSet one;
    one.add(range);
    add(one);
  }
}

void RangeSet::add(const RangeSet& others) { apply(adding(others)); }

void RangeSet::remove(const RangeSet& others) { apply(removing(others)); }

// Ranges that `others` overlap or touch are joined with them; the rest is unchanged.
RangeSet::Change RangeSet::adding(const RangeSet& others) {
  if (others.empty()) {
    return {};
  }
  const auto [first, last] = span_of(others, 1);
  std::vector<ByteRange> both;
  both.reserve(static_cast<std::size_t>(last - first) + others.size());
  std::merge(first, last, others.begin(), others.end(), std::back_inserter(both), begins_before);
  std::vector<ByteRange> joined;
  joined.reserve(both.size());
  for (const auto& each : both) {
    append(joined, each);
  }
  return prepare(first, last, std::move(joined));
}

RangeSet::Change RangeSet::removing(const RangeSet& others) {
  if (others.empty()) {
    return {};
  }
  const auto [first, last] = span_of(others, 0);
  if (first == last) {
    return {};
  }
  std::vector<ByteRange> left;
  left.reserve(static_cast<std::size_t>(last - first) + others.size());
  auto gone = first_behind(others, first->begin);
  for (auto each : std::span{first, last}) {
    for (; gone != others.end() && gone->end <= each.begin; ++gone) {
    }
    for (auto next = gone; next != others.end() && next->begin < each.end; ++next) {
      append(left, {each.begin, std::min(each.end, next->begin)});
      each.begin = std::min(each.end, std::max(each.begin, next->end));
    }
    append(left, each);
  }
  return prepare(first, last, std::move(left));
}

// The ranges from the first to the last that the span of `others` overlaps or, if `touching` is 1,
// touches. Pre: `others` is not empty.
std::pair<RangeSet::Place, RangeSet::Place> RangeSet::span_of(const RangeSet& others,
                                                              std::size_t touching) const noexcept {
  const auto span = others.span();
  const auto first = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const ByteRange& each) { return each.end + touching <= span.begin; });
  const auto last = std::partition_point(first, ranges_.end(), [&](const ByteRange& each) {
    return each.begin < span.end + touching;
  });
  return {first, last};
}

RangeSet::Change RangeSet::prepare(Place first, Place last, std::vector<ByteRange> ranges) {
  Change made;
  made.first = first - ranges_.cbegin();
  made.count = last - first;
  made.by = std::move(ranges);
  const auto size = ranges_.size() - static_cast<std::size_t>(made.count) + made.by.size();
  if (size > ranges_.capacity()) {
    ranges_.reserve(2 * size);
  }
  return made;
}

// `prepare` has reserved the capacity.
void RangeSet::apply(const Change& prepared) noexcept {
  const auto& by = prepared.by;
  const auto count = static_cast<std::ptrdiff_t>(by.size());
  const auto common = std::min(prepared.count, count);
  const auto at = ranges_.begin() + prepared.first;
  std::copy_n(by.begin(), common, at);
  ranges_.erase(at + common, at + prepared.count);
  ranges_.insert(at + common, by.begin() + common, by.end());
}

std::size_t RangeSet::nbytes() const noexcept {
  return std::accumulate(
      begin(), end(), std::size_t{0},
      [](std::size_t sum, const ByteRange& each) { return sum + each.nbytes(); });
}

bool RangeSet::overlaps(const ByteRange& range) const noexcept {
  const auto next = first_behind(ranges_, range.begin);
  return range.begin < range.end && next != end() && next->overlaps(range);
}

bool RangeSet::covers(const RangeSet& others) const noexcept {
  auto mine = others.empty() ? end() : first_behind(ranges_, others.begin()->begin);
  for (const auto& each : others) {
    for (; mine != end() && mine->end < each.end; ++mine) {
    }
    if (mine == end() || !mine->covers(each)) {
      return false;
    }
  }
  return true;
}

RangeSet RangeSet::common(const RangeSet& other) const {
  RangeSet found;
  if (empty() || other.empty()) {
    return found;
  }
  auto mine = first_behind(ranges_, other.begin()->begin);
  auto theirs = first_behind(other, begin()->begin);
  while (mine != end() && theirs != other.end()) {
    append(found.ranges_, {std::max(mine->begin, theirs->begin), std::min(mine->end, theirs->end)});
    ++(mine->end < theirs->end ? mine : theirs);
  }
  return found;
}

RangeSet RangeSet::joined(std::size_t most_gap) const {
  RangeSet found;
  for (const auto& each : ranges_) {
    append(found.ranges_, each, most_gap);
  }
  return found;
}

}  // namespace isthmus
