#pragma once
// Copies of N-dimensional blocks in the fewest operations: what is one run, or rows at one
// distance, goes as such; else many runs are one copy of ranges.
//
// Plain memory of the host that is in pieces is gathered or scattered by way of the staging ring
// where a device has one, packed in the device's own order.

#include "core/strided.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Pre: the copy's pointers are the endpoints', nothing in its extents wraps, no two runs of its
// destination share bytes. INVALID_ARGUMENT where the
// extents of the two sides overlap, unless the rows of one pitch lie between each other's.
[[nodiscard]] submitted copy_strided(queue* on, const endpoint& destination, const endpoint& source,
                                     const strided_copy& what, transfer_options options);

// The same where the caller knows that no byte is on both sides, however they lie between each
// other. The destination's strides need not nest: runs of one dimension may lie between those of
// another.
[[nodiscard]] submitted copy_strided_apart(queue* on, const endpoint& destination,
                                           const endpoint& source, const strided_copy& what,
                                           transfer_options options);

}  // namespace isthmus
