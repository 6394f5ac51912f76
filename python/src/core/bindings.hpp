// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of platforms, devices, contexts, events and queues, simulated devices, and the
// signatures of all native functions.

#include "core/objects.hpp"

namespace isthmus::python {

void bind_platform(nb::module_& module);
void bind_device(nb::module_& module);
void bind_context(nb::module_& module);
void bind_event(nb::module_& module);
// Without the operations, which transfer/bindings.hpp adds.
[[nodiscard]] nb::class_<Queue> bind_queue(nb::module_& module);
void bind_sim(nb::module_& module);
void bind_byte_counts(nb::module_& module);
// Makes inspect.signature() work for all native functions, methods and classes. `function` is any
// native function, and `method` any method of the native class `cls`: they name nanobind's types.
void bind_signatures(nb::handle function, nb::handle cls, const char* method);

}  // namespace isthmus::python
