// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocation by bare pointer, for callers that hold no buffer and no record. Thread-safe. The
// caller holds no lock of the library.

#include "memory/allocation.hpp"

namespace isthmus {

// Allocates in the order of `on`, a queue of the resource's context. Blocks of a resource that
// orders frees (`orders_frees`) get no record. Other blocks get one, and the pointer stands for a
// reference to it. Pre: nbytes > 0.
[[nodiscard]] result<void*> hand_out(memory_resource& from, std::size_t nbytes,
                                     std::size_t alignment, queue& on);
// Frees the memory after all work on `behind`; null: after the work known to the library.
// INVALID_ARGUMENT, and nothing is done, for a pointer that was not allocated here, as far as that
// can be detected, or was freed before.
result<void> take_back(memory_resource& from, void* pointer, std::size_t nbytes, queue* behind);
// The same for memory that has a record.
result<void> take_back_recorded(allocation& known, const void* pointer, queue* behind) noexcept;

}  // namespace isthmus
