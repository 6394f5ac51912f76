// SPDX-License-Identifier: Apache-2.0
#include "core/range_set.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

namespace isthmus {
namespace {

void append(std::vector<ByteRange>& ranges, const ByteRange& range, std::size_t max_gap = 0) {
  if (range.begin >= range.end) {
    return;
  }
  if (!ranges.empty() && range.begin <= ranges.back().end + max_gap) {
    ranges.back().end = std::max(ranges.back().end, range.end);
  } else {
    ranges.push_back(range);
  }
}

// An iterator to the first range of `all` that ends after `offset`.
template <class Ranges>
auto first_ending_after(const Ranges& all, std::size_t offset) noexcept {
  return std::partition_point(all.begin(), all.end(),
                              [&](const ByteRange& each) { return each.end <= offset; });
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
    RangeSet single;
    single.add(range);
    add(single);
  }
}

void RangeSet::add(const RangeSet& other) { apply(adding(other)); }

void RangeSet::remove(const RangeSet& other) { apply(removing(other)); }

// Ranges that overlap or touch those of `other` are joined with them; the rest is unchanged.
RangeSet::Change RangeSet::adding(const RangeSet& other) {
  if (other.empty()) {
    return {};
  }
  const auto [first, last] = span_of(other, 1);
  std::vector<ByteRange> both;
  both.reserve(static_cast<std::size_t>(last - first) + other.size());
  std::merge(first, last, other.begin(), other.end(), std::back_inserter(both), begins_before);
  std::vector<ByteRange> joined;
  joined.reserve(both.size());
  for (const auto& each : both) {
    append(joined, each);
  }
  return prepare(first, last, std::move(joined));
}

RangeSet::Change RangeSet::removing(const RangeSet& other) {
  if (other.empty()) {
    return {};
  }
  const auto [first, last] = span_of(other, 0);
  if (first == last) {
    return {};
  }
  std::vector<ByteRange> remaining;
  remaining.reserve(static_cast<std::size_t>(last - first) + other.size());
  auto removed = first_ending_after(other, first->begin);
  for (auto each : std::span{first, last}) {
    for (; removed != other.end() && removed->end <= each.begin; ++removed) {
    }
    for (auto next = removed; next != other.end() && next->begin < each.end; ++next) {
      append(remaining, {each.begin, std::min(each.end, next->begin)});
      each.begin = std::min(each.end, std::max(each.begin, next->end));
    }
    append(remaining, each);
  }
  return prepare(first, last, std::move(remaining));
}

// The ranges that the span of `other` overlaps or, if `touching` is 1, touches, as a pair of
// iterators. Pre: `other` is not empty.
std::pair<RangeSet::Iterator, RangeSet::Iterator> RangeSet::span_of(
    const RangeSet& other, std::size_t touching) const noexcept {
  const auto span = other.span();
  const auto first = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const ByteRange& each) { return each.end + touching <= span.begin; });
  const auto last = std::partition_point(first, ranges_.end(), [&](const ByteRange& each) {
    return each.begin < span.end + touching;
  });
  return {first, last};
}

RangeSet::Change RangeSet::prepare(Iterator first, Iterator last, std::vector<ByteRange> ranges) {
  Change change;
  change.first = first - ranges_.cbegin();
  change.count = last - first;
  change.replacement = std::move(ranges);
  const auto size =
      ranges_.size() - static_cast<std::size_t>(change.count) + change.replacement.size();
  if (size > ranges_.capacity()) {
    ranges_.reserve(2 * size);
  }
  return change;
}

// `prepare` has reserved the capacity.
void RangeSet::apply(const Change& prepared) noexcept {
  const auto& replacement = prepared.replacement;
  const auto count = static_cast<std::ptrdiff_t>(replacement.size());
  const auto common = std::min(prepared.count, count);
  const auto at = ranges_.begin() + prepared.first;
  std::copy_n(replacement.begin(), common, at);
  ranges_.erase(at + common, at + prepared.count);
  ranges_.insert(at + common, replacement.begin() + common, replacement.end());
}

std::size_t RangeSet::nbytes() const noexcept {
  return std::accumulate(
      begin(), end(), std::size_t{0},
      [](std::size_t sum, const ByteRange& each) { return sum + each.nbytes(); });
}

bool RangeSet::overlaps(const ByteRange& range) const noexcept {
  const auto next = first_ending_after(ranges_, range.begin);
  return range.begin < range.end && next != end() && next->overlaps(range);
}

bool RangeSet::covers(const RangeSet& other) const noexcept {
  auto own_range = other.empty() ? end() : first_ending_after(ranges_, other.begin()->begin);
  for (const auto& each : other) {
    for (; own_range != end() && own_range->end < each.end; ++own_range) {
    }
    if (own_range == end() || !own_range->covers(each)) {
      return false;
    }
  }
  return true;
}

RangeSet RangeSet::common(const RangeSet& other) const {
  RangeSet result;
  if (empty() || other.empty()) {
    return result;
  }
  auto own_range = first_ending_after(ranges_, other.begin()->begin);
  auto other_range = first_ending_after(other, begin()->begin);
  while (own_range != end() && other_range != other.end()) {
    append(result.ranges_, {std::max(own_range->begin, other_range->begin),
                            std::min(own_range->end, other_range->end)});
    ++(own_range->end < other_range->end ? own_range : other_range);
  }
  return result;
}

RangeSet RangeSet::joined(std::size_t max_gap) const {
  RangeSet result;
  for (const auto& each : ranges_) {
    append(result.ranges_, each, max_gap);
  }
  return result;
}

}  // namespace isthmus
