// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and other operations: those of Buffer and Queue, and functions.

#include "buffer/buffer.hpp"

namespace isthmus::python {

void bind_queue_operations(nb::class_<Queue>& bound);
void bind_buffer_operations(nb::class_<Buffer>& bound);
void bind_submit(nb::module_& module);
void bind_ranges(nb::module_& module);
void bind_nd(nb::module_& module);
void bind_pin(nb::module_& module);

}  // namespace isthmus::python
