#pragma once
// Copies by way of a device's pinned memory, by several threads at once, each of which fills,
// empties or converts one slot of its lane while the device copies another.
//
// A driver does the same on one thread, at 6 to 10 GB/s (H100); eight reach what the host's memory
// allows.

#include <functional>

#include "transfer/movement.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {

// On which sides the device whose ring it is has the memory.
struct ring_way {
  staging_ring& ring;
  bool reads = false;
  bool writes = false;
  bool converts = false;  // so that the host's work sets the pace, not the bus

  [[nodiscard]] bool within() const noexcept { return reads && writes; }
};

// Parts of at most that many bytes each.
using cutter = std::function<std::unique_ptr<const parts>(std::size_t most_bytes)>;

// In the order of `on`. The host can touch the side that the device has not; where it has both, the
// parts are turned on their way. `cut` is called before this returns. Pre: the ring is there.
[[nodiscard]] submitted copy_by_crew(queue& on, const movement& what, ring_way way,
                                     const cutter& cut, transfer_options options);

}  // namespace isthmus
