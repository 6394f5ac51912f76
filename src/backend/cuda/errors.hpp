// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts CUDA's codes to errors of this library. Thread-safe.

#include "backend/cuda/api.hpp"
#include "core/status.hpp"

namespace isthmus::cuda {

// "CUDA_ERROR_..." or "an unknown code".
[[nodiscard]] const char* code_name(CUresult outcome) noexcept;
[[nodiscard]] Status status_of(CUresult failure) noexcept;
// Whether the driver refused the call because a stream is being captured. Such an error does not
// report the outcome of earlier operations.
[[nodiscard]] bool is_capture_error(CUresult failure) noexcept;
// The message names the call and the code, and the remedy if there is one.
[[nodiscard]] Error call_failed(const char* call, CUresult failure);

}  // namespace isthmus::cuda
