// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of many ranges between two endpoints as one operation. Thread-safe.
//
// The host copies as in transfer.hpp if it can access both sides. Otherwise one operation of a
// queue copies all ranges: on CUDA a kernel (backend/cuda/ranges.hpp), with pageable memory
// gathered or scattered through the staging ring. Other backends copy range by range.

#include <span>
#include <vector>

#include "core/bytes.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Ranges in the order of their destinations, none empty; ranges that are adjacent on both sides are
// merged. Offsets are relative to the first byte of each side.
struct RangeList {
  std::vector<CopyRange> ranges;
  std::size_t destination_begin = 0;
  std::size_t destination_bytes = 0;  // from the first byte to the end of the last
  std::size_t source_begin = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // of all ranges
};

// Takes O(n log n) if the ranges are not sorted by destination, else O(n). OUT_OF_RANGE for a range
// that runs past the end of the address space, INVALID_ARGUMENT for two whose destinations overlap;
// the errors name them by their index in `ranges`.
[[nodiscard]] Result<RangeList> list_ranges(std::span<const CopyRange> ranges);

// Pre: the endpoints point to the list's first byte on their side. INVALID_ARGUMENT if one range
// writes what another reads; otherwise as `copy`.
[[nodiscard]] Submitted copy_ranges(Queue* queue, const Endpoint& destination,
                                    const Endpoint& source, RangeList ranges,
                                    TransferOptions options);

}  // namespace isthmus
