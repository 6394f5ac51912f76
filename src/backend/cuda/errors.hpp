#pragma once
// Codes of CUDA as errors of this library.

#include "backend/cuda/api.hpp"
#include "core/status.hpp"

namespace isthmus::cuda {

// "CUDA_ERROR_..." or "an unknown code".
[[nodiscard]] const char* code_name(code outcome) noexcept;
[[nodiscard]] status status_of(code failure) noexcept;
// Told of a stream that is being captured, by whomever, and nothing of what was asked.
[[nodiscard]] bool is_of_capture(code failure) noexcept;
// Names call and code, and says what to do where there is something to do.
[[nodiscard]] error call_failed(const char* call, code failure);

}  // namespace isthmus::cuda
