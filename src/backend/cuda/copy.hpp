// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contiguous and two-dimensional copies by the driver. Thread-safe. The context of the stream is
// current.
//
// The driver derives the direction of a copy from the addresses. A copy from or to pageable memory
// goes through a staging buffer of the driver. The source may be changed once the call returns. The
// call may therefore block the submitting thread until the driver has copied the source.

#include "backend/cuda/api.hpp"
#include "core/bytes.hpp"

namespace isthmus::cuda {

// Divides the copy at the boundaries of registered ranges.
[[nodiscard]] CUresult enqueue_divided_copy(const Api& calls, CUstream stream,
                                            CUdeviceptr destination, CUdeviceptr source,
                                            std::size_t nbytes) noexcept;

// The driver refuses a copy that begins in registered memory and goes beyond it, whichever library
// registered it. It accepts a copy that begins before registered memory. Refused copies are
// divided.
[[nodiscard]] inline CUresult enqueue_copy(const Api& calls, CUstream stream,
                                           CUdeviceptr destination, CUdeviceptr source,
                                           std::size_t nbytes) noexcept {
  const auto outcome = calls.copy(destination, source, nbytes, stream);
  return outcome == cu::k_error_INVALID_VALUE
             ? enqueue_divided_copy(calls, stream, destination, source, nbytes)
             : outcome;
}

// Copies row by row if the driver refuses to copy them together. It accepts no pitch above
// `max_pitch`.
[[nodiscard]] CUresult enqueue_copy_2d(const Api& calls, CUstream stream, const Copy2dShape& shape,
                                       std::size_t max_pitch) noexcept;

}  // namespace isthmus::cuda
