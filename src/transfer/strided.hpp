// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies N-dimensional blocks in as few operations as possible. A contiguous block is copied as one
// run and equidistant rows by a 2-D copy; any other block is one operation of many runs.
// Thread-safe.
//
// Pageable memory of many runs is gathered or scattered through the staging ring if the device has
// one.

#include "core/strided.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// The extents of the copy do not wrap around the address space, and no two runs of its destination
// share bytes. INVALID_ARGUMENT if the extents of the two
// sides overlap, unless both are rows of the same pitch that interleave without sharing bytes.
[[nodiscard]] Submitted copy_strided(Queue* queue, const Endpoint& destination,
                                     const Endpoint& source, const StridedCopy& copy,
                                     TransferOptions options);

// The same for sides that share no byte, without the check for that; they may interleave.
// The strides of the destination need not nest: runs of one dimension may lie between those of
// another.
[[nodiscard]] Submitted copy_strided_disjoint(Queue* queue, const Endpoint& destination,
                                              const Endpoint& source, const StridedCopy& copy,
                                              TransferOptions options);

}  // namespace isthmus
