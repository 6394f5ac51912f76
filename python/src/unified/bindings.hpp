// SPDX-License-Identifier: Apache-2.0
#pragma once
// The native part of UnifiedBuffer.

#include "core/common.hpp"

namespace isthmus::python {

void bind_unified(nb::module_& module);

}  // namespace isthmus::python
