// SPDX-License-Identifier: Apache-2.0
#pragma once
// Returns the pool that a resource is, for entry points with a function of pools alone or a fast
// path for pools. Other code uses `MemoryResource::is_pool`, or calls the resource. Thread-safe.

#include "memory/pool/pool.hpp"

namespace isthmus {

// Null if `resource` is not a pool. Costs one load.
[[nodiscard]] inline Pool* pool_of(MemoryResource& resource) noexcept { return resource.as_pool(); }

}  // namespace isthmus
