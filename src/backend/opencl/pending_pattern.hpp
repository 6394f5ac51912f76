// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps the pattern of a fill alive until the fill has completed. OpenCL allows the caller to reuse
// the pattern's memory when the call returns, but NVIDIA's driver (OpenCL 3.0 CUDA 13.0.98) does
// not copy the pattern in a context of several devices. If a command before the fill waits for a
// user event, the driver reads the pattern only when the fill begins, and uses the bytes that are
// at its address then. The pattern therefore has separate memory, which is freed once the driver
// reports the completion of the fill command. Completion of the whole operation does not suffice:
// one of its commands may be refused before the fill has begun.

#include <memory>

#include "backend/opencl/api.hpp"
#include "core/bytes.hpp"

namespace isthmus::opencl {

inline void free_pattern(cl_event, cl_int, void* pattern) noexcept {
  delete static_cast<FillPattern*>(pattern);
}

// If the driver does not report completion, the fill may begin at any time, so the memory is never
// freed.
inline void keep_until_ended(const Api& calls, cl_event fill,
                             std::unique_ptr<FillPattern> pattern) noexcept {
  calls.set_callback(fill, CL_COMPLETE, free_pattern, pattern.release());
}

}  // namespace isthmus::opencl
