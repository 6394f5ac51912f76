// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves between overlapping arrays, through a copy of the source in memory of the same kind.
// Thread-safe.

#include "array/placed_move.hpp"

namespace isthmus {

// The copy's memory is released once both operations have ended. OUT_OF_MEMORY if there is none for
// it.
[[nodiscard]] Submitted move_through_copy(Queue* queue, const PlacedMove& move,
                                          TransferOptions options);

// Whether memory of its kind and device can be allocated without a driver call.
[[nodiscard]] bool is_from_pool(const Allocation& memory) noexcept;

// New memory of the same kind and device as `like`, from the same pool if `like` is from one.
[[nodiscard]] Result<Endpoint> memory_like(Queue& queue, const Allocation& like,
                                           std::size_t nbytes);

}  // namespace isthmus
