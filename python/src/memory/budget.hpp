// SPDX-License-Identifier: Apache-2.0
#pragma once
// Budgets, and byte counts as text. Needs the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

struct Budget {
  BudgetHandle raw;
};

// An integer as `to_size` takes it, or text: "2GiB", or "80%" of the memory of `kind` that `device`
// (a Device, or not valid) has. ValueError for other text, TypeError for other objects.
[[nodiscard]] std::uint64_t to_bytes(nb::handle value, const char* name, nb::handle device,
                                     isthmus_kind_t kind);

}  // namespace isthmus::python
