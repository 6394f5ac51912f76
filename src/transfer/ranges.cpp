// SPDX-License-Identifier: Apache-2.0
#include "transfer/ranges.hpp"

#include <algorithm>
#include <numeric>

#include "core/sizes.hpp"
#include "transfer/copy_dispatch.hpp"

namespace isthmus {
namespace {

Result<void> check_end(const CopyRange& range, std::size_t index) {
  const auto furthest = std::max(range.destination_offset, range.source_offset);
  if (range.nbytes > SIZE_MAX - furthest) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "range {}: {} bytes from offset {} run past the end of the address space", index,
                range.nbytes, furthest);
  }
  return {};
}

// Indices sorted by destination; empty if the ranges are sorted already.
std::vector<std::size_t> in_order(std::span<const CopyRange> given) {
  const auto is_before = [](const CopyRange& one, const CopyRange& other) {
    return one.destination_offset < other.destination_offset;
  };
  std::vector<std::size_t> order;
  if (!std::is_sorted(given.begin(), given.end(), is_before)) {
    order.resize(given.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
      return is_before(given[one], given[other]);
    });
  }
  return order;
}

Error refuse_common_bytes(std::span<const CopyRange> given, std::size_t one, std::size_t other) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "ranges {} and {} overlap in the destination: {} bytes from offset {}, and {} from {}",
      std::min(one, other), std::max(one, other), given[one].nbytes, given[one].destination_offset,
      given[other].nbytes, given[other].destination_offset);
}

std::size_t end_of(const CopyRange& range) noexcept {
  return range.destination_offset + range.nbytes;
}

bool follows(const CopyRange& last, const CopyRange& next) noexcept {
  return end_of(last) == next.destination_offset &&
         last.source_offset + last.nbytes == next.source_offset;
}

// Makes offsets relative to the first byte of each side.
void rebase(RangeList& list) {
  list.destination_begin = list.each.front().destination_offset;
  const auto& last = list.each.back();
  list.destination_bytes = last.destination_offset + last.nbytes - list.destination_begin;
  std::size_t source_end = 0;
  list.source_begin = SIZE_MAX;
  for (const auto& range : list.each) {
    list.source_begin = std::min(list.source_begin, range.source_offset);
    source_end = std::max(source_end, range.source_offset + range.nbytes);
    list.nbytes += range.nbytes;
  }
  list.source_bytes = source_end - list.source_begin;
  for (auto& range : list.each) {
    range.destination_offset -= list.destination_begin;
    range.source_offset -= list.source_begin;
  }
}

// The destination range that `range` reads from, if any. Pre: `all` is sorted by destination.
const CopyRange* written_meanwhile(std::span<const CopyRange> all, const CopyRange& range,
                                   std::uintptr_t destination, std::uintptr_t source) {
  const auto begin = source + range.source_offset;
  const auto first = std::partition_point(all.begin(), all.end(), [=](const CopyRange& each) {
    return destination + each.destination_offset + each.nbytes <= begin;
  });
  const bool is_common =
      first != all.end() && destination + first->destination_offset < begin + range.nbytes;
  return is_common ? &*first : nullptr;
}

Result<void> check_apart(const Endpoint& destination, const Endpoint& source,
                         const RangeList& ranges) {
  const auto to = address(destination.pointer);
  const auto from = address(source.pointer);
  if (to >= from + ranges.source_bytes || from >= to + ranges.destination_bytes) {
    return {};
  }
  for (const auto& range : ranges.each) {
    if (const auto* written = written_meanwhile(ranges.each, range, to, from)) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "source and destination overlap: the {} bytes read from offset {} overlap the {} "
                  "written from offset {}: copy through another buffer",
                  range.nbytes, ranges.source_begin + range.source_offset, written->nbytes,
                  ranges.destination_begin + written->destination_offset);
    }
  }
  return {};
}

}  // namespace

Result<RangeList> list_ranges(std::span<const CopyRange> given) {
  for (std::size_t index = 0; index < given.size(); ++index) {
    ISTHMUS_TRY(check_end(given[index], index));
  }
  const auto order = in_order(given);
  RangeList list;
  list.each.reserve(given.size());
  std::size_t last = 0;  // that was not empty
  for (std::size_t at = 0; at < given.size(); ++at) {
    const auto index = order.empty() ? at : order[at];
    const auto& next = given[index];
    if (next.nbytes == 0) {
      continue;
    }
    if (list.each.empty() || !follows(list.each.back(), next)) {
      if (!list.each.empty() && end_of(list.each.back()) > next.destination_offset) {
        return refuse_common_bytes(given, last, index);
      }
      list.each.push_back(next);
    } else {
      list.each.back().nbytes += next.nbytes;
    }
    last = index;
  }
  if (!list.each.empty()) {
    rebase(list);
  }
  return list;
}

Submitted copy_ranges(Queue* asked, const Endpoint& destination, const Endpoint& source,
                      RangeList ranges, TransferOptions options) {
  if (ranges.each.size() <= 1) {
    return copy(asked, destination, source, ranges.nbytes, std::move(options));
  }
  auto chosen = choose_queue(asked, destination, source);
  ISTHMUS_TRY(chosen);
  ISTHMUS_TRY(check_apart(destination, source, ranges));
  const CopyPlan what{destination,         source,        ranges.destination_bytes,
                      ranges.source_bytes, ranges.nbytes, {},
                      ranges.each};
  // The function owns the list's memory, to which `what` refers.
  return make_copy(*chosen, what, std::move(options),
                   [to = destination.pointer, from = source.pointer, all = std::move(ranges.each)] {
                     copy_ranges({to, from, all});
                   });
}

}  // namespace isthmus
