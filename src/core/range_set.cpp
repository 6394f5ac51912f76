// SPDX-License-Identifier: Apache-2.0
#include "core/range_set.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

namespace isthmus {
namespace {

void append(std::vector<byte_range>& to, const byte_range& range, std::size_t most_gap = 0) {
  if (range.begin >= range.end) {
    return;
  }
  if (!to.empty() && range.begin <= to.back().end + most_gap) {
    to.back().end = std::max(to.back().end, range.end);
  } else {
    to.push_back(range);
  }
}

// The first range of `all` that ends after `place`, and what follows it.
template <class Ranges>
auto first_behind(const Ranges& all, std::size_t place) noexcept {
  return std::partition_point(all.begin(), all.end(),
                              [&](const byte_range& each) { return each.end <= place; });
}

bool begins_before(const byte_range& one, const byte_range& other) noexcept {
  return one.begin < other.begin;
}

}  // namespace

range_set::range_set(std::initializer_list<byte_range> ranges) {
  for (const auto& each : ranges) {
    add(each);
  }
}

void range_set::add(const byte_range& range) {
  if (ranges_.empty() || ranges_.back().begin <= range.begin) {
    append(ranges_, range);
  } else {
    range_set one;
    one.add(range);
    add(one);
  }
}

void range_set::add(const range_set& others) { apply(adding(others)); }

void range_set::remove(const range_set& others) { apply(removing(others)); }

// Ranges that `others` overlap or touch are joined with them; the rest is unchanged.
range_set::change range_set::adding(const range_set& others) {
  if (others.empty()) {
    return {};
  }
  const auto [first, last] = span_of(others, 1);
  std::vector<byte_range> both;
  both.reserve(static_cast<std::size_t>(last - first) + others.size());
  std::merge(first, last, others.begin(), others.end(), std::back_inserter(both), begins_before);
  std::vector<byte_range> joined;
  joined.reserve(both.size());
  for (const auto& each : both) {
    append(joined, each);
  }
  return prepare(first, last, std::move(joined));
}

range_set::change range_set::removing(const range_set& others) {
  if (others.empty()) {
    return {};
  }
  const auto [first, last] = span_of(others, 0);
  if (first == last) {
    return {};
  }
  std::vector<byte_range> left;
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
std::pair<range_set::place, range_set::place> range_set::span_of(
    const range_set& others, std::size_t touching) const noexcept {
  const auto span = others.span();
  const auto first = std::partition_point(
      ranges_.begin(), ranges_.end(),
      [&](const byte_range& each) { return each.end + touching <= span.begin; });
  const auto last = std::partition_point(first, ranges_.end(), [&](const byte_range& each) {
    return each.begin < span.end + touching;
  });
  return {first, last};
}

range_set::change range_set::prepare(place first, place last, std::vector<byte_range> by) {
  change made;
  made.first = first - ranges_.cbegin();
  made.count = last - first;
  made.by = std::move(by);
  const auto size = ranges_.size() - static_cast<std::size_t>(made.count) + made.by.size();
  if (size > ranges_.capacity()) {
    ranges_.reserve(2 * size);
  }
  return made;
}

// `prepare` has reserved the capacity.
void range_set::apply(const change& prepared) noexcept {
  const auto& by = prepared.by;
  const auto count = static_cast<std::ptrdiff_t>(by.size());
  const auto common = std::min(prepared.count, count);
  const auto at = ranges_.begin() + prepared.first;
  std::copy_n(by.begin(), common, at);
  ranges_.erase(at + common, at + prepared.count);
  ranges_.insert(at + common, by.begin() + common, by.end());
}

std::size_t range_set::nbytes() const noexcept {
  return std::accumulate(
      begin(), end(), std::size_t{0},
      [](std::size_t sum, const byte_range& each) { return sum + each.nbytes(); });
}

bool range_set::overlaps(const byte_range& range) const noexcept {
  const auto next = first_behind(ranges_, range.begin);
  return range.begin < range.end && next != end() && next->overlaps(range);
}

bool range_set::covers(const range_set& others) const noexcept {
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

range_set range_set::common(const range_set& other) const {
  range_set found;
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

range_set range_set::joined(std::size_t most_gap) const {
  range_set found;
  for (const auto& each : ranges_) {
    append(found.ranges_, each, most_gap);
  }
  return found;
}

}  // namespace isthmus
