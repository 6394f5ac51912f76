// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes and orders of new arrays.

#include "array_layout.hpp"

namespace isthmus::python {

enum class wanted_order { c, fortran, any, keep };

// "C" and "F"; with a prototype "A" and "K" too. Not given: "C", or "K" with a prototype.
// ValueError and TypeError otherwise.
[[nodiscard]] wanted_order to_order(nb::handle given, bool has_prototype);

// Like to_shape, with a fast path for the common cases.
[[nodiscard]] array_numbers to_extents(nb::handle shape);
// Like dense_layout, with a cache: programs create arrays of a few shapes over and over.
[[nodiscard]] shared_layout recent_layout(array_numbers&& shape, const element_type& type);
[[nodiscard]] shared_layout fortran_layout(array_numbers shape, const element_type& type);
// The shape of `like` without gaps, in an order that depends on the order of `like`.
[[nodiscard]] shared_layout ordered_layout(const array_layout& like, const element_type& type,
                                           wanted_order order);

}  // namespace isthmus::python
