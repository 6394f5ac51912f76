// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation record of any address, be it in a block of a pool or in other memory. Thread-safe.

#include <string_view>

#include "memory/pool/pool_blocks.hpp"
#include "memory/records/allocation.hpp"

namespace isthmus {

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
