// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between memory of two devices or contexts that no single queue can access. The data goes
// through host memory in chunks: reading a chunk overlaps with writing the previous one, and no
// memory of the full size is needed. If one of the devices copies faster through pinned memory, its
// staging ring holds the chunks. Thread-safe.

#include "transfer/copy_plan.hpp"

namespace isthmus {

// Both sides are device memory, of different devices or contexts; `queue` belongs to one of these
// contexts. A non-blocking copy is asynchronous if the device of `queue` can wait for the
// host. Otherwise, if `queue` can access the destination, the source is read before this returns
// and the queue only writes. If it cannot, the copy has completed when this returns.
[[nodiscard]] Submitted copy_staged(Queue& queue, const CopyPlan& plan, TransferOptions options);

// Whether large copies to or from `device` are faster through its staging ring. All copies through
// the host then use the ring, except conversions between two devices. Pageable memory would need
// one more queue, and a driver call for each of many small copies.
[[nodiscard]] bool has_ring(Device& device, bool to_device);

}  // namespace isthmus
