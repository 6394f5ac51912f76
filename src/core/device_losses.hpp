#pragma once
// How many errors of the process have reported the loss of a device so far.
//
// Each counts once, when it is made, for all devices together: code that would serve a request
// without a driver call compares two numbers, and calls the driver once after a change.

#include <atomic>
#include <cstdint>

namespace isthmus {

inline constinit std::atomic<std::uint32_t> device_losses{0};

}  // namespace isthmus
