// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of isthmus.compat.dpctl.memory.

#include "core/common.hpp"

namespace isthmus::python {

void bind_dpctl(nb::module_& module);

}  // namespace isthmus::python
