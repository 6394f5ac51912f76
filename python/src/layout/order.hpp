// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes and orders of new arrays.

#include "layout/layout.hpp"

namespace isthmus::python {

enum class RequestedOrder { c, fortran, any, keep };

// Accepts "C" and "F", and with a prototype also "A" and "K". The default is "C", or "K" with a
// prototype. ValueError for other text, TypeError for other objects.
[[nodiscard]] RequestedOrder to_order(nb::handle argument, bool has_prototype);

// Like to_shape, with a fast path for the common cases.
[[nodiscard]] ArrayNumbers to_extents(nb::handle shape);
// Like dense_layout, with a cache: programs create arrays of a few shapes over and over.
[[nodiscard]] SharedLayout recent_layout(ArrayNumbers&& shape, const ElementType& type);
[[nodiscard]] SharedLayout fortran_layout(ArrayNumbers shape, const ElementType& type);
// A layout of the shape of `like` without gaps. With `any` and `keep`, the order of its axes
// depends on that of `like`.
[[nodiscard]] SharedLayout ordered_layout(const ArrayLayout& like, const ElementType& type,
                                          RequestedOrder order);

}  // namespace isthmus::python
