#include "core/range_set.hpp"

#include <algorithm>
#include <numeric>
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

void range_set::add(const range_set& others) {
  std::vector<byte_range> both(ranges_.size() + others.size());
  std::merge(begin(), end(), others.begin(), others.end(), both.begin(), begins_before);
  std::vector<byte_range> joined;
  joined.reserve(both.size());
  for (const auto& each : both) {
    append(joined, each);
  }
  ranges_ = std::move(joined);
}

void range_set::remove(const range_set& others) {
  std::vector<byte_range> left;
  left.reserve(ranges_.size() + others.size());
  auto gone = others.begin();
  for (auto each : ranges_) {
    for (; gone != others.end() && gone->end <= each.begin; ++gone) {
    }
    for (auto next = gone; next != others.end() && next->begin < each.end; ++next) {
      append(left, {each.begin, std::min(each.end, next->begin)});
      each.begin = std::min(each.end, std::max(each.begin, next->end));
    }
    append(left, each);
  }
  ranges_ = std::move(left);
}

std::size_t range_set::nbytes() const noexcept {
  return std::accumulate(
      begin(), end(), std::size_t{0},
      [](std::size_t sum, const byte_range& each) { return sum + each.nbytes(); });
}

bool range_set::overlaps(const byte_range& range) const noexcept {
  const auto next = std::partition_point(
      begin(), end(), [&](const byte_range& each) { return each.end <= range.begin; });
  return range.begin < range.end && next != end() && next->overlaps(range);
}

bool range_set::covers(const range_set& others) const noexcept {
  auto mine = begin();
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
  auto mine = begin();
  auto theirs = other.begin();
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
