// SPDX-License-Identifier: Apache-2.0
#include "unified/range_offsets.hpp"

#include <cstring>
#include <utility>

#include "core/expects.hpp"
#include "memory/base/result_memory.hpp"

namespace isthmus {

RangeList same_offsets(const RangeSet& ranges) {
  ISTHMUS_EXPECTS(!ranges.empty());
  RangeList list;
  list.ranges.reserve(ranges.size());
  const auto first = ranges.begin()->begin;
  for (const auto& range : ranges) {
    list.ranges.push_back({range.begin - first, range.begin - first, range.nbytes()});
    list.destination_bytes = range.end - first;
    list.nbytes += range.nbytes();
  }
  list.destination_begin = list.source_begin = first;
  list.source_bytes = list.destination_bytes;
  return list;
}

RangeList from_block(const RangeSet& ranges) {
  auto list = same_offsets(ranges);
  std::size_t block_bytes = 0;
  for (auto& range : list.ranges) {
    range.source_offset = block_bytes;
    block_bytes += range.nbytes;
  }
  list.source_begin = 0;
  list.source_bytes = block_bytes;
  return list;
}

RangeList to_block(const RangeSet& ranges) {
  auto list = from_block(ranges);
  for (auto& range : list.ranges) {
    std::swap(range.destination_offset, range.source_offset);
  }
  std::swap(list.destination_begin, list.source_begin);
  std::swap(list.destination_bytes, list.source_bytes);
  return list;
}

void scatter(std::byte* destination, const RangeSet& ranges, const std::byte* block,
             const RangeSet& subset) noexcept {
  ISTHMUS_EXPECTS_SLOW(ranges.covers(subset));
  auto subrange = subset.begin();
  for (const auto& range : ranges) {
    for (; subrange != subset.end() && subrange->begin < range.end; ++subrange) {
      std::memcpy(destination + subrange->begin, block + (subrange->begin - range.begin),
                  subrange->nbytes());
    }
    block += range.nbytes();
  }
}

Result<std::shared_ptr<std::byte>> block_for(const RangeSet& ranges) {
  ISTHMUS_EXPECTS(!ranges.empty());
  auto memory = allocate_result(ranges.nbytes());
  ISTHMUS_TRY(memory);
  return std::shared_ptr<std::byte>{static_cast<std::byte*>(*memory), &free_result};
}

}  // namespace isthmus
