// SPDX-License-Identifier: Apache-2.0
#include "transfer/ranges.hpp"

#include <algorithm>
#include <numeric>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "transfer/copy_dispatch.hpp"

namespace isthmus {
namespace {

Result<void> check_end(const CopyRange& range, std::size_t index) {
  const auto max_offset = std::max(range.destination_offset, range.source_offset);
  if (range.nbytes > SIZE_MAX - max_offset) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "range {}: {} bytes from offset {} run past the end of the address space", index,
                range.nbytes, max_offset);
  }
  return {};
}

// Returns the indices of the ranges sorted by destination; empty if the ranges are sorted already.
std::vector<std::size_t> sorted_order(std::span<const CopyRange> ranges) {
  const auto is_before = [](const CopyRange& one, const CopyRange& other) {
    return one.destination_offset < other.destination_offset;
  };
  std::vector<std::size_t> order;
  if (!std::is_sorted(ranges.begin(), ranges.end(), is_before)) {
    order.resize(ranges.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
      return is_before(ranges[one], ranges[other]);
    });
  }
  return order;
}

Error overlap_error_of(std::span<const CopyRange> ranges, std::size_t one, std::size_t other) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "ranges {} and {} overlap in the destination: {} bytes from offset {}, and {} from {}",
      std::min(one, other), std::max(one, other), ranges[one].nbytes,
      ranges[one].destination_offset, ranges[other].nbytes, ranges[other].destination_offset);
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
  list.destination_begin = list.ranges.front().destination_offset;
  const auto& last = list.ranges.back();
  list.destination_bytes = last.destination_offset + last.nbytes - list.destination_begin;
  std::size_t source_end = 0;
  list.source_begin = SIZE_MAX;
  for (const auto& range : list.ranges) {
    list.source_begin = std::min(list.source_begin, range.source_offset);
    source_end = std::max(source_end, range.source_offset + range.nbytes);
    list.nbytes += range.nbytes;
  }
  list.source_bytes = source_end - list.source_begin;
  for (auto& range : list.ranges) {
    range.destination_offset -= list.destination_begin;
    range.source_offset -= list.source_begin;
  }
}

// Returns the range of `all` whose destination overlaps the source of `range`, or null. `all` is
// sorted by destination.
const CopyRange* overlapping_destination(std::span<const CopyRange> all, const CopyRange& range,
                                         std::uintptr_t destination, std::uintptr_t source) {
  ISTHMUS_EXPECTS_SLOW(std::ranges::is_sorted(all, {}, &CopyRange::destination_offset));
  const auto begin = source + range.source_offset;
  const auto first = std::partition_point(all.begin(), all.end(), [=](const CopyRange& each) {
    return destination + each.destination_offset + each.nbytes <= begin;
  });
  const bool overlaps =
      first != all.end() && destination + first->destination_offset < begin + range.nbytes;
  return overlaps ? &*first : nullptr;
}

Result<void> check_disjoint(const Endpoint& destination, const Endpoint& source,
                            const RangeList& ranges) {
  const auto destination_address = address(destination.pointer);
  const auto source_address = address(source.pointer);
  if (destination_address >= source_address + ranges.source_bytes ||
      source_address >= destination_address + ranges.destination_bytes) {
    return {};
  }
  for (const auto& range : ranges.ranges) {
    if (const auto* written =
            overlapping_destination(ranges.ranges, range, destination_address, source_address)) {
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

Result<RangeList> list_ranges(std::span<const CopyRange> ranges) {
  for (std::size_t index = 0; index < ranges.size(); ++index) {
    ISTHMUS_TRY(check_end(ranges[index], index));
  }
  const auto order = sorted_order(ranges);
  RangeList list;
  list.ranges.reserve(ranges.size());
  std::size_t last = 0;  // index of the last range that was not empty
  for (std::size_t at = 0; at < ranges.size(); ++at) {
    const auto index = order.empty() ? at : order[at];
    const auto& next = ranges[index];
    if (next.nbytes == 0) {
      continue;
    }
    if (list.ranges.empty() || !follows(list.ranges.back(), next)) {
      if (!list.ranges.empty() && end_of(list.ranges.back()) > next.destination_offset) {
        return overlap_error_of(ranges, last, index);
      }
      list.ranges.push_back(next);
    } else {
      list.ranges.back().nbytes += next.nbytes;
    }
    last = index;
  }
  if (!list.ranges.empty()) {
    rebase(list);
  }
  return list;
}

Submitted copy_ranges(Queue* requested, const Endpoint& destination, const Endpoint& source,
                      RangeList ranges, TransferOptions options) {
  if (ranges.ranges.size() <= 1) {
    return copy(requested, destination, source, ranges.nbytes, std::move(options));
  }
  auto chosen = choose_queue(requested, destination, source);
  ISTHMUS_TRY(chosen);
  ISTHMUS_TRY(check_disjoint(destination, source, ranges));
  const CopyPlan plan{destination,         source,        ranges.destination_bytes,
                      ranges.source_bytes, ranges.nbytes, {},
                      ranges.ranges};
  // The lambda takes ownership of the list, to which `plan` refers.
  return make_copy(*chosen, plan, std::move(options),
                   [destination_pointer = destination.pointer, source_pointer = source.pointer,
                    all = std::move(ranges.ranges)] {
                     copy_ranges({destination_pointer, source_pointer, all});
                   });
}

}  // namespace isthmus
