// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between memory of two devices or contexts that no single queue reaches: through host
// memory, in chunks, so that reading a chunk overlaps with writing the one before and no block of
// the full size is needed. If one of the devices copies pinned memory faster, the chunks lie in its
// staging ring. Thread-safe.

#include "transfer/copy_plan.hpp"

namespace isthmus {

// Pre: both sides are device memory, of different devices or contexts; `queue` belongs to one of
// these contexts. A non-blocking copy is asynchronous if the device of `queue` can wait for the
// host. Otherwise, if `queue` reaches the destination, the source is read before this returns and
// only the writing is left to the queue; if `queue` belongs to the source, the copy has ended when
// this returns.
[[nodiscard]] Submitted copy_staged(Queue& queue, const CopyPlan& plan, TransferOptions options);

// Whether large copies of that device are faster through its ring. All copies through the host then
// use it, except conversions between two devices: plain memory would need one more queue, and a
// driver call for each of many pieces.
[[nodiscard]] bool has_ring(Device& device, bool to_device);

}  // namespace isthmus
