// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds blocks of pools by address, through the page map and without a lock. Thread-safe.

#include <string_view>

#include "memory/allocation.hpp"
#include "memory/pool_page_table.hpp"
#include "memory/slab.hpp"

namespace isthmus {

struct PooledBlock {
  PoolPage* first = nullptr;  // record of the page that it begins in; null: no block
  std::byte* start = nullptr;
  std::size_t nbytes = 0;  // usable bytes
};

// The block that contains `pointer`; none if the memory is free. A pool without checks does not
// know which blocks of a slab are live, so for such a pool this may return a free block. `page` is
// the record of the page in the page map.
[[nodiscard]] PooledBlock block_containing(PoolPage& page, const void* pointer) noexcept;

// A live block without an allocation record, and the facts common to all memory of its pool. Empty
// if there is none, or if finding it takes more than a few loads.
struct BareBlock {
  PoolPageTable::CommonFacts* common = nullptr;
  std::byte* start = nullptr;
  std::size_t nbytes = 0;
};
[[nodiscard]] inline BareBlock bare_block_containing(const void* pointer) noexcept {
  const auto& entry = process_page_map.at(pointer);
  const auto seen = entry.load();
  if (!seen.is_bare()) {
    return {};
  }
  auto& owner = entry.last_slab();
  auto& common = PoolPageTable::of(seen.record()).common();
  const auto number = owner.block_containing(pointer);
  if (number == Slab::k_no_block ||
      (common.has_live_marks.load(k_relaxed) && !owner.is_live(number))) {
    return {};
  }
  auto* start = owner.address_of(number);
  // Only the entry of the page that a block begins in shows whether the block has a record.
  const bool is_bare = address(start) >> k_pool_page_bits == address(pointer) >> k_pool_page_bits ||
                       process_page_map.at(start).load().is_bare();
  return is_bare ? BareBlock{&common, start, owner.block_bytes} : BareBlock{};
}

// The allocation that contains `pointer`, in pooled or other memory. A pooled block that was
// allocated as a bare pointer gets its record here: from now on operations on it are ordered as on
// any other allocation. Null for memory that the library does not manage. INVALID_ARGUMENT for
// memory that it manages but that is not allocated: free memory of a pool, or memory that was freed
// and is still used by work. If allocations are nested in others, this finds the outer one;
// `innermost_at` finds the inner one.
[[nodiscard]] Result<Ref<Allocation>> allocation_at(const void* pointer);

// The INVALID_ARGUMENT error for a pointer to memory that is not allocated. `location` describes
// that memory, as part of a sentence.
[[nodiscard]] Error not_allocated(const void* pointer, std::string_view location);
inline constexpr std::string_view k_freed_in_use = "memory that was freed while work used it";

}  // namespace isthmus
