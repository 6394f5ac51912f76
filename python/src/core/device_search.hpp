// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the device of a filter string, and opens drivers for that on the first search. Needs the
// interpreter's lock, which a search releases.

#include "core/common.hpp"

namespace isthmus::python {

// To be called before anything that may open the drivers that `filter` allows: registers drivers
// that pip installed with the library. Costs nothing after the first call.
void prepare_drivers(const char* filter);

// Calls isthmus_device_find, which may open drivers, with the interpreter's lock released.
[[nodiscard]] isthmus_status_t try_find_device(const char* filter, DeviceHandle& device);
// The same, but throws the library's errors.
[[nodiscard]] DeviceHandle find_device(const char* filter);

}  // namespace isthmus::python
