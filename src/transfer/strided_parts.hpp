// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submits N-dimensional blocks to queues, and divides them into chunks.

#include "core/strided.hpp"
#include "transfer/parts.hpp"

namespace isthmus {

// Submits in as few operations as possible, each after the one before, and returns the last one's
// event. If one is refused nothing is in flight.
[[nodiscard]] submitted put_strided(queue& on, const strided_copy& what, wait_list after);

// Chunks that are blocks themselves, packed in the order of their elements on that side.
[[nodiscard]] std::unique_ptr<const parts> cut_strided(const strided_copy& what, side packed_as,
                                                       std::size_t most_bytes);

}  // namespace isthmus
