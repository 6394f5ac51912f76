// SPDX-License-Identifier: Apache-2.0
#pragma once
// Submits N-dimensional blocks to queues, and divides them into chunks. Thread-safe.

#include "core/strided.hpp"
#include "transfer/copy_chunks.hpp"

namespace isthmus {

// Submits `copy` in as few operations as possible, each ordered after the previous one, and returns
// the event of the last. If a submission fails nothing is in flight.
[[nodiscard]] Submitted submit_strided(Queue& queue, const StridedCopy& copy, WaitList after);

// Divides `copy` into chunks that are N-dimensional blocks. Each is packed in the element order of
// the side `packed_as`.
[[nodiscard]] std::unique_ptr<const CopyChunks> cut_strided(const StridedCopy& copy, Side packed_as,
                                                            std::size_t max_bytes);

}  // namespace isthmus
