// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffer, its creation by a resource, the scopes that count or free buffers, and strict mode.

#include "core/resource_objects.hpp"

namespace isthmus::python {

struct Buffer;

// Without the operations and exports, which transfer/bindings.hpp and interop/bindings.hpp add.
[[nodiscard]] nb::class_<Buffer> bind_buffer(nb::module_& module);
void bind_allocate(nb::class_<Resource>& bound);
void bind_allocation_scopes(nb::module_& module);
void bind_host_access(nb::module_& module);

}  // namespace isthmus::python
