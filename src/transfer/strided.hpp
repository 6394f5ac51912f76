// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of N-dimensional blocks in the fewest operations: one run, or rows at one distance, are
// copied as such; otherwise many runs are one operation.
//
// Pageable memory in many runs is gathered or scattered through the staging ring if the device
// has one, packed in the device's order.

#include "core/strided.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Pre: the copy's pointers are those of the endpoints, its extents do not wrap around the address
// space, and no two runs of its destination share bytes. INVALID_ARGUMENT if the extents of the two
// sides overlap, unless both are rows of the same pitch that interleave without sharing bytes.
[[nodiscard]] Submitted copy_strided(Queue* queue, const Endpoint& destination,
                                     const Endpoint& source, const StridedCopy& copy,
                                     TransferOptions options);

// The same if the caller knows that the two sides share no byte, however they interleave. The
// strides of the destination need not nest: runs of one dimension may lie between those of another.
[[nodiscard]] Submitted copy_strided_disjoint(Queue* queue, const Endpoint& destination,
                                              const Endpoint& source, const StridedCopy& copy,
                                              TransferOptions options);

}  // namespace isthmus
