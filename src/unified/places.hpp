#pragma once
// Where the ranges of a move lie: at the same places of both copies, or one behind the other in a
// block of their own.

#include <cstddef>
#include <memory>

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "transfer/ranges.hpp"

namespace isthmus {

// The same offsets on both sides, counted from the first. Pre of all here: some ranges.
[[nodiscard]] range_list same_places(const range_set& ranges);
// Into ranges, out of one block, and the other way.
[[nodiscard]] range_list from_one_block(const range_set& ranges);
[[nodiscard]] range_list into_one_block(const range_set& ranges);

[[nodiscard]] result<std::shared_ptr<std::byte>> block_for(const range_set& ranges);
// Out of a block that has `ranges`, what is wanted of them. Pre: `wanted` is some of these.
void scatter(std::byte* to, const range_set& ranges, const std::byte* block,
             const range_set& wanted) noexcept;

}  // namespace isthmus
