// SPDX-License-Identifier: Apache-2.0
#include "unified/places.hpp"

#include <cstring>
#include <utility>

#include "memory/result_memory.hpp"

namespace isthmus {

RangeList same_places(const RangeSet& ranges) {
  RangeList list;
  list.each.reserve(ranges.size());
  const auto first = ranges.begin()->begin;
  for (const auto& each : ranges) {
    list.each.push_back({each.begin - first, each.begin - first, each.nbytes()});
    list.destination_bytes = each.end - first;
    list.nbytes += each.nbytes();
  }
  list.destination_begin = list.source_begin = first;
  list.source_bytes = list.destination_bytes;
  return list;
}

RangeList from_one_block(const RangeSet& ranges) {
  auto list = same_places(ranges);
  std::size_t at = 0;
  for (auto& each : list.each) {
    each.source_offset = at;
    at += each.nbytes;
  }
  list.source_begin = 0;
  list.source_bytes = at;
  return list;
}

RangeList into_one_block(const RangeSet& ranges) {
  auto list = from_one_block(ranges);
  for (auto& each : list.each) {
    std::swap(each.destination_offset, each.source_offset);
  }
  std::swap(list.destination_begin, list.source_begin);
  std::swap(list.destination_bytes, list.source_bytes);
  return list;
}

void scatter(std::byte* destination, const RangeSet& ranges, const std::byte* block,
             const RangeSet& wanted) noexcept {
  auto part = wanted.begin();
  for (const auto& each : ranges) {
    for (; part != wanted.end() && part->begin < each.end; ++part) {
      std::memcpy(destination + part->begin, block + (part->begin - each.begin), part->nbytes());
    }
    block += each.nbytes();
  }
}

Result<std::shared_ptr<std::byte>> block_for(const RangeSet& ranges) {
  auto room = allocate_result(ranges.nbytes());
  ISTHMUS_TRY(room);
  return std::shared_ptr<std::byte>{static_cast<std::byte*>(*room), &free_result};
}

}  // namespace isthmus
