// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens SYCL devices through dpctl's C interface library.

#include <vector>

#include "backend/platform.hpp"

namespace isthmus::sycl {

// Opens the library that ISTHMUS_SYCL_LIBRARY names, else the one that dpctl has loaded. Before
// that, registers the OpenCL drivers of ISTHMUS_OPENCL_LIBRARY with SYCL. This has no effect if
// SYCL has already listed its platforms, which it does once per process. NOT_FOUND, with every
// reason, if no device has USM.
[[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> open();

// Whether dpctl's library is loaded in the process.
[[nodiscard]] bool is_in_process() noexcept;

// Whether this backend created the event.
[[nodiscard]] bool owns_event(Event& candidate) noexcept;

}  // namespace isthmus::sycl
