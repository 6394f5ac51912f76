// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL driver and its contexts, as events and queues refer to them. A Driver is a member of
// its platform, which is never freed, so that a reference to it is always valid. Immutable once the
// platform has listed its devices, so thread-safe.

#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

struct Driver {
  Api calls;
  // Whether some device's queues must be drained before the driver is unloaded
  // (workarounds/exit_drain.hpp).
  bool needs_drain_at_exit = false;
};

// A context of a driver. Does not own a reference to `handle`.
struct NativeContext {
  const Driver& driver;
  cl_context handle;
};

}  // namespace isthmus::opencl
