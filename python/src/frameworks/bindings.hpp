// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocator of PyTorch, and memory for arrays of other libraries.

#include "core/common.hpp"

namespace isthmus::python {

void bind_torch(nb::module_& module);
void bind_bare_block(nb::module_& module);

}  // namespace isthmus::python
