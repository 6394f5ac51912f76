#pragma once
// The records of slabs: of the whole process, and never unmapped, since who looks a pointer up
// takes no lock. One that was made for a shape serves slabs of that shape only.

#include "memory/slab.hpp"

namespace isthmus {

// Safe for threads. For slabs of this shape; null where the host has no memory.
[[nodiscard]] slab* take_slab_record(const slab_shape& shape) noexcept;
// In a constant time, without memory.
void give_slab_record(slab& unused) noexcept;

}  // namespace isthmus
