// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocates the records of slabs. They belong to the process and are never unmapped, since a thread
// that looks up a pointer takes no lock. A record created for a shape is reused for slabs of that
// shape only.

#include "memory/pool/slab.hpp"

namespace isthmus {

// Thread-safe. A record for slabs of this shape; null if the host has no memory.
[[nodiscard]] Slab* allocate_slab_record(const SlabShape& shape) noexcept;
// Takes constant time and no memory.
void deallocate_slab_record(Slab& unused) noexcept;

}  // namespace isthmus
