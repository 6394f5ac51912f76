#pragma once
// The pattern of a fill that may not have begun. OpenCL lets the caller reuse the pattern's memory
// when the call returns. NVIDIA's driver (OpenCL 3.0 CUDA 13.0.98) does not copy it in a context of
// several devices: if a command ahead of the fill waits for a user event, the pattern is read when
// the fill begins, and whatever then lies at that address is written. So the pattern has memory of
// its own, which is freed once the driver reports the end of that command. How the operation around
// it ends does not say that: a part of it may be refused before the fill has begun.

#include <memory>

#include "backend/opencl/api.hpp"
#include "core/bytes.hpp"

namespace isthmus::opencl {

inline void free_pattern(event_handle, code, void* pattern) noexcept {
  delete static_cast<fill_pattern*>(pattern);
}

// Without a report the fill may begin at any time: the memory is then never freed.
inline void keep_until_ended(const api& calls, event_handle fill,
                             std::unique_ptr<fill_pattern> pattern) noexcept {
  calls.set_callback(fill, cl::k_complete, free_pattern, pattern.release());
}

}  // namespace isthmus::opencl
