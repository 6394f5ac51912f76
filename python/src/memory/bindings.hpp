// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of memory resources, budgets and default pools, and functions on them.

#include "core/resource_objects.hpp"

namespace isthmus::python {

void bind_budget(nb::module_& module);
// Without `allocate`, which buffer/bindings.hpp adds.
[[nodiscard]] nb::class_<Resource> bind_resource(nb::module_& module);
void bind_pool(nb::module_& module);
void bind_adaptors(nb::module_& module);
void bind_request_adaptors(nb::module_& module);
void bind_custom(nb::module_& module);
void bind_tracking(nb::module_& module);
void bind_cutting(nb::module_& module);
void bind_debug(nb::module_& module);
void bind_oom_callbacks(nb::module_& module);
void bind_current_resource(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_default_pools(nb::module_& module);

}  // namespace isthmus::python
