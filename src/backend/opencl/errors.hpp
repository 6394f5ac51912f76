// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts OpenCL's error codes to names and to errors of this library. Thread-safe.

#include "backend/opencl/api.hpp"
#include "core/status.hpp"

namespace isthmus::opencl {

// "CL_INVALID_VALUE"; "an unknown code" for other numbers.
[[nodiscard]] const char* code_name(cl_int outcome) noexcept;
// "clFoo failed: CL_INVALID_VALUE (-30)", with the status that corresponds to the code.
[[nodiscard]] Error call_failed(const char* call, cl_int failure);
[[nodiscard]] bool is_out_of_memory(cl_int failure) noexcept;

}  // namespace isthmus::opencl
