// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocates memory, and creates the allocation record of memory that was just allocated.
// Thread-safe.

#include "memory/records/allocation.hpp"

namespace isthmus {

// Allocates from a memory resource, or from the driver if `resource` is null. Fails as
// `Context::allocate` does. If the resource sub-allocates the block from an allocation that has a
// record, the new record is nested in that one, as described at `Allocation::adopt`.
[[nodiscard]] Result<Ref<Allocation>> create_allocation(Queue& queue,
                                                        const AllocationRequest& request,
                                                        MemoryResource* resource);

// As `create_allocation`, for memory that was just allocated from `resource`. On failure the memory
// is returned to `resource`.
[[nodiscard]] Result<Ref<Allocation>> take_ownership(Queue& queue, const Allocation::Facts& facts,
                                                     MemoryResource* resource);

}  // namespace isthmus
