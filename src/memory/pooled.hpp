#pragma once
// Blocks of pools, found by address: by the page map, without a lock.

#include "memory/allocation.hpp"
#include "memory/grain_table.hpp"

namespace isthmus {

struct pooled_block {
  grain* first = nullptr;  // of the grain that it begins in; null: no block
  std::byte* start = nullptr;
  std::size_t nbytes = 0;  // usable ones
};

// The block that holds `pointer`, of whatever is live now; no block where a pool knows that nothing
// is. `in`: what the page map says of it.
[[nodiscard]] pooled_block block_holding(grain& in, const void* pointer) noexcept;

// The allocation that holds `pointer`, pooled memory or other. A pooled block that was handed out
// as a bare pointer gets its record here: from now on what is done with it is ordered as with any
// other allocation. Null: none of ours. INVALID_ARGUMENT: in a pool, but not allocated.
[[nodiscard]] result<ref<allocation>> allocation_at(const void* pointer);

}  // namespace isthmus
