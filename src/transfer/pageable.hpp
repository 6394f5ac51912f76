#pragma once
// Copies between a device and plain host memory that it reaches badly: by way of pinned memory, by
// several threads at once, each of which fills or empties one slot while the device copies another.
//
// A driver does the same on one thread, at 6 to 10 GB/s (H100); eight reach what the host's memory
// allows.

#include "transfer/endpoint.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Whether such a copy is better made so than given to `carrying` as it is.
[[nodiscard]] bool is_better_staged(queue& carrying, const endpoint& destination,
                                    const endpoint& source, const pitched& shape, bool blocking);

// Pre: one side is plain memory, the other a device's, and `carrying` is of that one's device.
[[nodiscard]] submitted copy_pageable(queue& on, queue& carrying, const endpoint& destination,
                                      const endpoint& source, const pitched& shape,
                                      transfer_options options);

}  // namespace isthmus
