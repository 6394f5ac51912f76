// SPDX-License-Identifier: Apache-2.0
#pragma once
// Drains command queues at process exit (backend/workarounds/exit_drain.hpp). Thread-safe.

#include "backend/opencl/api.hpp"
#include "backend/workarounds/exit_drain.hpp"

namespace isthmus::opencl {

// Retains the queue. `calls` is never freed.
[[nodiscard]] NativeQueue retain_native_queue(const Api& calls, cl_command_queue queue) noexcept;

}  // namespace isthmus::opencl
