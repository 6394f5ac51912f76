// SPDX-License-Identifier: Apache-2.0
#include "unified/range_offsets.hpp"

#include <cstring>
#include <utility>

#include "memory/result_memory.hpp"

namespace isthmus {

RangeList same_offsets(const RangeSet& ranges) {
  RangeList list;
  list.ranges.reserve(ranges.size());
  const auto first = ranges.begin()->begin;
  for (const auto& each : ranges) {
    list.ranges.push_back({each.begin - first, each.begin - first, each.nbytes()});
    list.destination_bytes = each.end - first;
    list.nbytes += each.nbytes();
  }
  list.destination_begin = list.source_begin = first;
  list.source_bytes = list.destination_bytes;
  return list;
}

RangeList from_block(const RangeSet& ranges) {
  auto list = same_offsets(ranges);
  std::size_t at = 0;
  for (auto& each : list.ranges) {
    each.source_offset = at;
    at += each.nbytes;
  }
  list.source_begin = 0;
  list.source_bytes = at;
  return list;
}

RangeList to_block(const RangeSet& ranges) {
  auto list = from_block(ranges);
  for (auto& each : list.ranges) {
    std::swap(each.destination_offset, each.source_offset);
  }
  std::swap(list.destination_begin, list.source_begin);
  std::swap(list.destination_bytes, list.source_bytes);
  return list;
}

void scatter(std::byte* destination, const RangeSet& ranges, const std::byte* block,
             const RangeSet& subset) noexcept {
  auto part = subset.begin();
  for (const auto& each : ranges) {
    for (; part != subset.end() && part->begin < each.end; ++part) {
      std::memcpy(destination + part->begin, block + (part->begin - each.begin), part->nbytes());
    }
    block += each.nbytes();
  }
}

Result<std::shared_ptr<std::byte>> block_for(const RangeSet& ranges) {
  auto memory = allocate_result(ranges.nbytes());
  ISTHMUS_TRY(memory);
  return std::shared_ptr<std::byte>{static_cast<std::byte*>(*memory), &free_result};
}

}  // namespace isthmus
