#pragma once
// Memory in the hands of a caller who has nothing but its pointer.

#include "memory/allocation.hpp"

namespace isthmus {

// Ordered by `on`, a queue of the resource's context. A resource that orders frees hands its blocks
// out as they are, others with a record, for which the pointer stands. Pre: nbytes > 0.
[[nodiscard]] result<void*> hand_out(memory_resource& from, std::size_t nbytes,
                                     std::size_t alignment, queue& on);
// Behind all work on `behind`; null: behind what we know of. INVALID_ARGUMENT for what was not
// handed out here, as far as can be told, or was taken back before, and then nothing is done.
result<void> take_back(memory_resource& from, void* pointer, std::size_t nbytes, queue* behind);
// The same for memory that has a record.
result<void> take_back_recorded(allocation& known, const void* pointer, queue* behind) noexcept;

}  // namespace isthmus
