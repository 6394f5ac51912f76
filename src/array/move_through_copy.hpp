// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves between overlapping arrays through a copy of the source. The copy is in host memory if the
// host can access both sides, otherwise in memory of the source's kind and device. Thread-safe.

#include "array/endpoint_move.hpp"

namespace isthmus {

// The memory of the copy is released when both operations have completed. OUT_OF_MEMORY if it
// cannot be allocated.
[[nodiscard]] Submitted move_through_copy(Queue* queue, const EndpointMove& move,
                                          TransferOptions options);

// Whether `memory` was allocated from a pool, so that memory of its kind and device can usually be
// allocated without a driver call.
[[nodiscard]] bool is_from_pool(const Allocation& memory) noexcept;

// Allocates memory of the same kind and device as `model`, from the same pool if `model` is from a
// pool.
[[nodiscard]] Result<Endpoint> memory_like(Queue& queue, const Allocation& model,
                                           std::size_t nbytes);

}  // namespace isthmus
