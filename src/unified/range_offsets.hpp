// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source and destination offsets of the ranges of a transfer: the same offsets in both copies, or
// one range after the other in a separate block. Thread-safe.

#include <cstddef>
#include <memory>

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "transfer/ranges.hpp"

namespace isthmus {

// Uses the same offsets on both sides, relative to the first range.
[[nodiscard]] RangeList same_offsets(const RangeSet& ranges);
// Offsets of a copy from a block into the ranges, and from the ranges into a block.
[[nodiscard]] RangeList from_block(const RangeSet& ranges);
[[nodiscard]] RangeList to_block(const RangeSet& ranges);

// Allocates a block for the bytes of `ranges`.
[[nodiscard]] Result<std::shared_ptr<std::byte>> block_for(const RangeSet& ranges);
// Copies `subset` out of a block that holds `ranges`.
void scatter(std::byte* destination, const RangeSet& ranges, const std::byte* block,
             const RangeSet& subset) noexcept;

}  // namespace isthmus
