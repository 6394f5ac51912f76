#pragma once
// Blocks of pools, found by address: by the page map, without a lock.

#include <string_view>

#include "memory/allocation.hpp"
#include "memory/grain_table.hpp"
#include "memory/slab.hpp"

namespace isthmus {

struct pooled_block {
  grain* first = nullptr;  // of the grain that it begins in; null: no block
  std::byte* start = nullptr;
  std::size_t nbytes = 0;  // usable ones
};

// The block that holds `pointer`, of whatever is live now; no block where a pool knows that nothing
// is. `in`: what the page map says of it.
[[nodiscard]] pooled_block block_holding(grain& in, const void* pointer) noexcept;

// A block without an allocation record, and what all memory of its pool has in common; null where
// it takes more than a few loads to tell.
struct bare_block {
  grain_table::common_facts* common = nullptr;
  std::byte* start = nullptr;
  std::size_t nbytes = 0;
};
[[nodiscard]] inline bare_block bare_block_holding(const void* pointer) noexcept {
  const auto& at = process_page_map.at(pointer);
  const auto seen = at.look();
  if (!seen.is_bare()) {
    return {};
  }
  auto& owner = at.last_slab();
  auto& common = grain_table::of(seen.record()).common();
  const auto number = owner.block_holding(pointer);
  if (number == slab::k_no_block || (common.knows_live.load(k_relaxed) && !owner.is_live(number))) {
    return {};
  }
  auto* start = owner.address_of(number);
  // A block with a record is told in the grain that it begins in.
  const bool is_bare = address(start) >> k_grain_bits == address(pointer) >> k_grain_bits ||
                       process_page_map.at(start).look().is_bare();
  return is_bare ? bare_block{&common, start, owner.block_bytes} : bare_block{};
}

// The allocation that holds `pointer`, pooled memory or other. A pooled block that was handed out
// as a bare pointer gets its record here: from now on what is done with it is ordered as with any
// other allocation. Null: memory that the library does not manage. INVALID_ARGUMENT: memory that it
// manages, but that is not allocated: free memory of a pool, or freed and still in use by work.
// What other allocations lie in is the answer for these: `innermost_at` tells them apart.
[[nodiscard]] result<ref<allocation>> allocation_at(const void* pointer);

// INVALID_ARGUMENT: where the pointer lies, as a part of a sentence.
[[nodiscard]] error not_allocated(const void* pointer, std::string_view in);
inline constexpr std::string_view k_freed_in_use = "memory that was freed while work used it";

}  // namespace isthmus
