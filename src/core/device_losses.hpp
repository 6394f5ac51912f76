// SPDX-License-Identifier: Apache-2.0
#pragma once
// The number of errors in this process that reported the loss of a device.
//
// Each error counts once, when it is created, for all devices together. Code that serves requests
// without a driver call compares this number with the one it saw before, and calls the driver once
// after a change. Thread-safe.

#include <atomic>
#include <cstdint>

namespace isthmus {

inline constinit std::atomic<std::uint32_t> device_losses{0};

}  // namespace isthmus
