#pragma once
// Shapes and orders of new arrays.

#include "array_layout.hpp"

namespace isthmus::python {

enum class wanted_order { c, fortran, any, keep };

// "C" and "F", and of a prototype's "A" and "K" too; not given: "C", or "K" for a prototype.
// ValueError and TypeError otherwise.
[[nodiscard]] wanted_order to_order(nb::handle given, bool has_prototype);

// As to_shape, at once for what most programs write.
[[nodiscard]] array_numbers to_extents(nb::handle shape);
// As dense_layout: programs make arrays of a few shapes over and over, whose layouts are kept.
[[nodiscard]] shared_layout recent_layout(array_numbers&& shape, const element_type& type);
[[nodiscard]] shared_layout fortran_layout(array_numbers shape, const element_type& type);
// Of the shape of `like`, without gaps, in an order that depends on its own.
[[nodiscard]] shared_layout ordered_layout(const array_layout& like, const element_type& type,
                                           wanted_order order);

}  // namespace isthmus::python
