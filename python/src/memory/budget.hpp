// SPDX-License-Identifier: Apache-2.0
#pragma once
// Budgets. Needs the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

struct Budget {
  BudgetHandle raw;
};

// Converts an argument of an adaptor over `upstream`, as core/byte_counts.hpp does. A percentage is
// one of the memory of the upstream's device, or with `nothing` a ValueError. TypeError if
// `upstream` is not a resource.
enum class PercentOf { device, nothing };
[[nodiscard]] std::uint64_t to_bytes_for(nb::handle upstream, nb::handle value, const char* name,
                                         PercentOf percent_of = PercentOf::nothing);

}  // namespace isthmus::python
