// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts OpenCL's error codes to names and to errors of this library. Thread-safe.

#include "backend/opencl/api.hpp"
#include "core/status.hpp"

namespace isthmus::opencl {

// "CL_INVALID_VALUE"; "an unknown code" for other numbers.
[[nodiscard]] const char* code_name(code outcome) noexcept;
// "clFoo failed: CL_INVALID_VALUE (-30)", with the status that corresponds to the code.
[[nodiscard]] error call_failed(const char* call, code failure);
[[nodiscard]] bool is_out_of_memory(code failure) noexcept;

}  // namespace isthmus::opencl
