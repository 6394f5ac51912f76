// SPDX-License-Identifier: Apache-2.0
#pragma once
// Budgets. Needs the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

struct Budget {
  BudgetHandle raw;
};

}  // namespace isthmus::python
