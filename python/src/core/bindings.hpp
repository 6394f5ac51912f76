// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of platforms, devices, contexts, events and queues, and simulated devices.

#include "core/objects.hpp"

namespace isthmus::python {

void bind_platform(nb::module_& module);
void bind_device(nb::module_& module);
void bind_context(nb::module_& module);
void bind_event(nb::module_& module);
// Without the operations, which transfer/bindings.hpp adds.
[[nodiscard]] nb::class_<Queue> bind_queue(nb::module_& module);
void bind_sim(nb::module_& module);

}  // namespace isthmus::python
