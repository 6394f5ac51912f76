// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion of the axis and shape arguments of functions on arrays.

#include "layout/layout.hpp"

namespace isthmus::python {

// Converts the axis to [0, ndim). Throws NumPy's AxisError, which is both a ValueError and an
// IndexError, if there is no such axis; TypeError if the argument is not an integer.
[[nodiscard]] std::size_t to_axis(nb::handle argument, std::size_t ndim);
// Converts an integer or a sequence to a tuple, without checking its items. TypeError for other
// objects.
[[nodiscard]] nb::object to_axis_tuple(nb::handle argument);
// Converts an integer or a sequence of distinct axes. ValueError if an axis is repeated.
[[nodiscard]] ArrayNumbers to_axes(nb::handle argument, std::size_t ndim);
// Converts a sequence of all axes, in any order. ValueError if it has more or fewer.
[[nodiscard]] ArrayNumbers to_permutation(nb::handle argument, std::size_t ndim);

// A shape of `size` elements, from one integer or sequence or from several integers. One extent may
// be -1: it is computed from the other extents. ValueError if the number of elements differs,
// OutOfRangeError for extents past 63 bits, TypeError for other objects.
[[nodiscard]] ArrayNumbers to_shape_of(nb::handle argument, std::int64_t size);

// Broadcasts the layout to `shape`. ValueError if the shapes are incompatible.
[[nodiscard]] ArrayLayout broadcast(const ArrayLayout& layout, const ArrayNumbers& shape);

}  // namespace isthmus::python
