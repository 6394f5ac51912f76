#pragma once
// SYCL's devices, by way of dpctl's C interface library.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sycl {

// Opens the library that ISTHMUS_SYCL_LIBRARY names, else the one that dpctl has loaded. SYCL is
// shown the OpenCL drivers of ISTHMUS_OPENCL_LIBRARY first, unless it has listed its platforms
// already: it does so once in a process. NOT_FOUND, with every reason, if no device has USM.
[[nodiscard]] result<std::vector<ref<isthmus::platform>>> open();

// Whether the program has loaded dpctl's library by itself.
[[nodiscard]] bool is_in_process() noexcept;

[[nodiscard]] bool made(event& candidate) noexcept;

}  // namespace isthmus::sycl
