// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of many ranges between two endpoints as one operation. Thread-safe.
//
// If the host can access both sides it copies under the conditions of transfer.hpp. Otherwise one
// operation of a queue copies all ranges. On CUDA this is a kernel (backend/cuda/ranges.hpp), and
// pageable memory is gathered or scattered through the staging ring. Other backends copy range by
// range.

#include <span>
#include <vector>

#include "core/bytes.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Non-empty ranges sorted by destination; ranges that are adjacent on both sides are merged.
// Offsets are relative to the first byte of each side.
struct RangeList {
  std::vector<CopyRange> ranges;
  std::size_t destination_begin = 0;
  std::size_t destination_bytes = 0;  // from the first byte to the end of the last
  std::size_t source_begin = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // of all ranges
};

// Checks and sorts ranges: O(n) if they are sorted by destination already, otherwise O(n log n).
// OUT_OF_RANGE if a range runs past the end of the address space; INVALID_ARGUMENT if the
// destinations of two ranges overlap. The errors name ranges by their index in `ranges`.
[[nodiscard]] Result<RangeList> list_ranges(std::span<const CopyRange> ranges);

// Each endpoint points to the list's first byte on its side. INVALID_ARGUMENT if the
// destination of a range overlaps the source of one; other errors as for `copy`.
[[nodiscard]] Submitted copy_ranges(Queue* queue, const Endpoint& destination,
                                    const Endpoint& source, RangeList ranges,
                                    TransferOptions options);

}  // namespace isthmus
