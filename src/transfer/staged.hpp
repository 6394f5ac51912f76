#pragma once
// Copies between memory of two devices, or of two contexts, which no queue reaches both: by way of
// the host, in pieces, so that reading one and writing the one before overlap and no block of the
// whole size is needed. Where one of the devices copies pinned memory faster the pieces lie in its
// staging ring.

#include "transfer/movement.hpp"

namespace isthmus {

// Pre: both sides are device memory, of different devices or contexts; `on` is of one of these
// contexts. Asynchronous
// where both devices can wait for the host; elsewhere the source is read before this returns, and
// only the writing is left to the queue; all is done here where `on` is the source's.
[[nodiscard]] submitted copy_staged(queue& on, const movement& what, transfer_options options);

// Whether large copies of that device's go faster by way of its ring. Then all that go by way of
// the host do, but for conversions between two devices: plain memory would take a queue more, and a
// call of the driver's for each of many pieces.
[[nodiscard]] bool has_ring(device& where, bool to_device);

}  // namespace isthmus
