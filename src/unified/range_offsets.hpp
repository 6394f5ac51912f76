// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source and destination offsets of the ranges of a transfer: the same offsets in both copies, or
// one range after the other in a separate block.

#include <cstddef>
#include <memory>

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "transfer/ranges.hpp"

namespace isthmus {

// The same offsets on both sides, relative to the first range. Pre of all functions here: `ranges`
// is not empty.
[[nodiscard]] RangeList same_offsets(const RangeSet& ranges);
// From one block into ranges, and the reverse.
[[nodiscard]] RangeList from_block(const RangeSet& ranges);
[[nodiscard]] RangeList to_block(const RangeSet& ranges);

[[nodiscard]] Result<std::shared_ptr<std::byte>> block_for(const RangeSet& ranges);
// Copies `subset` out of a block that holds `ranges`. Pre: `subset` is a subset of `ranges`.
void scatter(std::byte* destination, const RangeSet& ranges, const std::byte* block,
             const RangeSet& subset) noexcept;

}  // namespace isthmus
