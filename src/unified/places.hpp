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
[[nodiscard]] range_list same_places(const range_set& ranges);
// From one block into ranges, and the reverse.
[[nodiscard]] range_list from_one_block(const range_set& ranges);
[[nodiscard]] range_list into_one_block(const range_set& ranges);

[[nodiscard]] result<std::shared_ptr<std::byte>> block_for(const range_set& ranges);
// Copies `wanted` out of a block that holds `ranges`. Pre: `wanted` is a subset of `ranges`.
void scatter(std::byte* to, const range_set& ranges, const std::byte* block,
             const range_set& wanted) noexcept;

}  // namespace isthmus
