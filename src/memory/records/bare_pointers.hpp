// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocation by bare pointer, for callers that hold no buffer and no record. Thread-safe. The
// caller holds no lock of the library.

#include "memory/records/allocation.hpp"

namespace isthmus {

// Allocates in the order of `queue`, a queue of the resource's context. Blocks of a resource that
// orders frees (`orders_frees`) get no record. Other blocks get one, and the pointer represents a
// reference to it.
[[nodiscard]] Result<void*> allocate_raw(MemoryResource& resource, std::size_t nbytes,
                                         std::size_t alignment, Queue& queue);
// Frees the memory after all work on `queue`; null: after the work known to the library.
// INVALID_ARGUMENT, without effect, for a pointer that was freed before or, as far as this can be
// detected, was not allocated by this resource.
Result<void> deallocate_raw(MemoryResource& resource, void* pointer, std::size_t nbytes,
                            Queue* queue);

}  // namespace isthmus
