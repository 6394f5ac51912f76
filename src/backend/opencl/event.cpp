// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/event.hpp"

#include "os/process.hpp"

namespace isthmus::opencl {

DriverEvent::~DriverEvent() {
  if (handle_ != nullptr && !os::drivers_unavailable()) {
    calls().release_event(handle_);
  }
}

}  // namespace isthmus::opencl
