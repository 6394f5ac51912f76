// SPDX-License-Identifier: Apache-2.0
#include "tracking/free_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <new>

namespace isthmus::tracking {

std::optional<std::size_t> FreeRanges::allocate(std::size_t nbytes) noexcept {
  const auto found = by_size_.lower_bound(Sized{nbytes, 0});
  if (found == by_size_.end()) {
    return std::nullopt;
  }
  const auto [size, begin] = *found;
  spare_size_ = by_size_.extract(found);
  spare_begin_ = by_begin_.extract(begin);
  if (size > nbytes) {
    spare_size_.value() = Sized{size - nbytes, begin + nbytes};
    by_size_.insert(std::move(spare_size_));
    spare_begin_.key() = begin + nbytes;
    by_begin_.insert(std::move(spare_begin_));
  }
  return begin;
}

void FreeRanges::join(ByteRange& range) noexcept {
  const auto absorb = [&](auto at) {
    range = {std::min(range.begin, at->first), std::max(range.end, at->second)};
    spare_size_ = by_size_.extract(Sized{at->second - at->first, at->first});
    spare_begin_ = by_begin_.extract(at);
  };
  auto next = by_begin_.lower_bound(range.begin);
  if (next != by_begin_.end() && next->first == range.end) {
    absorb(next++);
  }
  if (next != by_begin_.begin() && std::prev(next)->second == range.begin) {
    absorb(std::prev(next));
  }
}

void FreeRanges::release(const ByteRange& range) noexcept {
  auto merged = range;
  join(merged);
  if (!spare_size_.empty() && !spare_begin_.empty()) {
    spare_size_.value() = Sized{merged.nbytes(), merged.begin};
    by_size_.insert(std::move(spare_size_));
    spare_begin_.key() = merged.begin;
    spare_begin_.mapped() = merged.end;
    by_begin_.insert(std::move(spare_begin_));
    return;
  }
  try {
    const auto at = by_begin_.emplace(merged.begin, merged.end).first;
    try {
      by_size_.emplace(merged.nbytes(), merged.begin);
    } catch (const std::bad_alloc&) {
      by_begin_.erase(at);
    }
  } catch (const std::bad_alloc&) {  // the range remains allocated
  }
}

}  // namespace isthmus::tracking
