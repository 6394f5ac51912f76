#pragma once
// OpenCL's error codes in words and as statuses of this library.

#include "backend/opencl/api.hpp"
#include "core/status.hpp"

namespace isthmus::opencl {

// "CL_INVALID_VALUE"; "an unknown code" for others.
[[nodiscard]] const char* code_name(code outcome) noexcept;
// "clFoo failed: CL_INVALID_VALUE (-30)", with the status that fits the code.
[[nodiscard]] error call_failed(const char* call, code failure);
[[nodiscard]] bool is_out_of_memory(code failure) noexcept;

}  // namespace isthmus::opencl
