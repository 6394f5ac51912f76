// SPDX-License-Identifier: Apache-2.0
#pragma once
// SYCL devices, through dpctl's C interface library.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sycl {

// Opens the library that ISTHMUS_SYCL_LIBRARY names, else the one that dpctl has loaded. Before
// that, makes the OpenCL drivers of ISTHMUS_OPENCL_LIBRARY known to SYCL. This has no effect if
// SYCL has listed its platforms already, which it does once in a process. NOT_FOUND, with every
// reason, if no device has USM.
[[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> open();

// Whether dpctl's library is loaded in the process.
[[nodiscard]] bool is_in_process() noexcept;

// Whether the event was made by this backend.
[[nodiscard]] bool owns_event(Event& candidate) noexcept;

}  // namespace isthmus::sycl
