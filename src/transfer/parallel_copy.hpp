// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies through a device's staging ring with several copy threads. Each thread has a slot pair:
// the thread fills, empties or converts one slot while the device copies the other. Thread-safe.
//
// A driver stages such copies on one thread, at 6 to 10 GB/s (H100). Eight threads reach the
// bandwidth of the host's memory.

#include <functional>

#include "transfer/copy_plan.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {

// Which sides of a copy are memory of the ring's device: the source (`reads`), the destination
// (`writes`), or both.
struct RingDirection {
  StagingRing& ring;
  bool reads = false;
  bool writes = false;
  bool converts = false;  // elements are converted: the host limits the speed, not the bus

  [[nodiscard]] bool is_within_device() const noexcept { return reads && writes; }
};

// Divides a copy into chunks of at most `max_bytes` bytes.
using Cutter = std::function<std::unique_ptr<const CopyChunks>(std::size_t max_bytes)>;

// Copies in the order of `queue`. If both sides are memory of the device, `CopyChunks::convert` is
// called between reading and writing a chunk. `cut` is called before this returns. The host can
// access a side that is not memory of the device, and the ring is available.
[[nodiscard]] Submitted copy_in_parallel(Queue& queue, const CopyPlan& plan, RingDirection route,
                                         const Cutter& cut, TransferOptions options);

}  // namespace isthmus
