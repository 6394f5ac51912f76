// SPDX-License-Identifier: Apache-2.0
#include "core/range_set.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "core/expects.hpp"

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
                              [&](const ByteRange& range) { return range.end <= offset; });
}

bool begins_before(const ByteRange& one, const ByteRange& other) noexcept {
  return one.begin < other.begin;
}

}  // namespace

RangeSet::RangeSet(std::initializer_list<ByteRange> ranges) {
  for (const auto& range : ranges) {
    add(range);
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

void RangeSet::add(const RangeSet& other) { apply(prepare_add(other)); }

void RangeSet::remove(const RangeSet& other) { apply(prepare_remove(other)); }

// Ranges that overlap or touch those of `other` are joined with them; the rest is unchanged.
RangeSet::Change RangeSet::prepare_add(const RangeSet& other) {
  if (other.empty()) {
    return {};
  }
  const auto [first, last] = span_of(other, 1);
  std::vector<ByteRange> merged;
  merged.reserve(static_cast<std::size_t>(last - first) + other.size());
  std::merge(first, last, other.begin(), other.end(), std::back_inserter(merged), begins_before);
  std::vector<ByteRange> joined;
  joined.reserve(merged.size());
  for (const auto& range : merged) {
    append(joined, range);
  }
  return prepare_replacement(first, last, std::move(joined));
}

RangeSet::Change RangeSet::prepare_remove(const RangeSet& other) {
  if (other.empty()) {
    return {};
  }
  const auto [first, last] = span_of(other, 0);
  if (first == last) {
    return {};
  }
  std::vector<ByteRange> remaining;
  remaining.reserve(static_cast<std::size_t>(last - first) + other.size());
  auto next_removed = first_ending_after(other, first->begin);
  for (auto range : std::span{first, last}) {
    for (; next_removed != other.end() && next_removed->end <= range.begin; ++next_removed) {
    }
    for (auto cut = next_removed; cut != other.end() && cut->begin < range.end; ++cut) {
      append(remaining, {range.begin, std::min(range.end, cut->begin)});
      range.begin = std::min(range.end, std::max(range.begin, cut->end));
    }
    append(remaining, range);
  }
  return prepare_replacement(first, last, std::move(remaining));
}

// Returns the ranges that the span of `other` overlaps or, if `max_gap` is 1, touches, as a pair of
// iterators.
std::pair<RangeSet::Iterator, RangeSet::Iterator> RangeSet::span_of(
    const RangeSet& other, std::size_t max_gap) const noexcept {
  ISTHMUS_EXPECTS(max_gap <= 1, max_gap);
  const auto span = other.span();
  const auto first = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const ByteRange& range) { return range.end + max_gap <= span.begin; });
  const auto last = std::partition_point(first, ranges_.end(), [&](const ByteRange& range) {
    return range.begin < span.end + max_gap;
  });
  return {first, last};
}

RangeSet::Change RangeSet::prepare_replacement(Iterator first, Iterator last,
                                               std::vector<ByteRange> ranges) {
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

// `prepare_replacement` has reserved the capacity.
void RangeSet::apply(const Change& change) noexcept {
  const auto& replacement = change.replacement;
  const auto count = static_cast<std::ptrdiff_t>(replacement.size());
  const auto size = static_cast<std::ptrdiff_t>(ranges_.size());
  ISTHMUS_EXPECTS(change.first + change.count <= size, change.first, change.count, size);
  ISTHMUS_EXPECTS(size - change.count + count <= static_cast<std::ptrdiff_t>(ranges_.capacity()));
  const auto common = std::min(change.count, count);
  const auto position = ranges_.begin() + change.first;
  std::copy_n(replacement.begin(), common, position);
  ranges_.erase(position + common, position + change.count);
  ranges_.insert(position + common, replacement.begin() + common, replacement.end());
}

std::size_t RangeSet::nbytes() const noexcept {
  return std::accumulate(
      begin(), end(), std::size_t{0},
      [](std::size_t sum, const ByteRange& range) { return sum + range.nbytes(); });
}

bool RangeSet::overlaps(const ByteRange& range) const noexcept {
  const auto next = first_ending_after(ranges_, range.begin);
  return range.begin < range.end && next != end() && next->overlaps(range);
}

bool RangeSet::covers(const RangeSet& other) const noexcept {
  auto own_range = other.empty() ? end() : first_ending_after(ranges_, other.begin()->begin);
  for (const auto& other_range : other) {
    for (; own_range != end() && own_range->end < other_range.end; ++own_range) {
    }
    if (own_range == end() || !own_range->covers(other_range)) {
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
  for (const auto& range : ranges_) {
    append(result.ranges_, range, max_gap);
  }
  return result;
}

}  // namespace isthmus
