// SPDX-License-Identifier: Apache-2.0
#pragma once
// How other libraries, processes and Cython modules use the memory of buffers.

#include "buffer/buffer.hpp"

namespace isthmus::python {

void bind_buffer_exchange(nb::module_& module, nb::class_<Buffer>& bound);
void bind_ipc(nb::module_& module, nb::class_<Buffer>& bound);
void bind_numpy_items(nb::module_& module);
// The classes of isthmus.memory.
void bind_usm_memory(nb::module_& module);
// The functions for `cimport isthmus`.
void bind_c_api(nb::module_& module);

}  // namespace isthmus::python
