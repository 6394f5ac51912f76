// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submits N-dimensional blocks to queues, and divides them into chunks.

#include "core/strided.hpp"
#include "transfer/copy_chunks.hpp"

namespace isthmus {

// Submits in as few operations as possible, each after the one before, and returns the last one's
// event. If one is refused nothing is in flight.
[[nodiscard]] Submitted submit_strided(Queue& queue, const StridedCopy& copy, WaitList after);

// Chunks that are blocks themselves, packed in the order of their elements on that side.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_strided(const StridedCopy& copy, Side packed_as,
                                                            std::size_t max_bytes);

}  // namespace isthmus
