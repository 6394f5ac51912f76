// SPDX-License-Identifier: Apache-2.0
#pragma once
// Axes and shapes, as functions on arrays take them.

#include "array_layout.hpp"

namespace isthmus::python {

// The axis in [0, ndim). Otherwise NumPy's AxisError, which is both a ValueError and an IndexError;
// TypeError if it is not an integer.
[[nodiscard]] std::size_t to_axis(nb::handle argument, std::size_t ndim);
// An integer or a sequence as a tuple, whose items are not checked. TypeError for anything else.
[[nodiscard]] nb::object to_axis_tuple(nb::handle argument);
// From an integer or a sequence of distinct axes; ValueError if one is repeated.
[[nodiscard]] ArrayNumbers to_axes(nb::handle argument, std::size_t ndim);
// A sequence of all axes, in any order. ValueError if there are more or fewer.
[[nodiscard]] ArrayNumbers to_permutation(nb::handle argument, std::size_t ndim);

// A shape of `size` elements, from one integer or sequence or from several integers. One extent may
// be -1: it is computed from the other extents. ValueError if the number of elements differs,
// OutOfRangeError past 63 bits, TypeError.
[[nodiscard]] ArrayNumbers to_shape_of(nb::handle argument, std::int64_t size);

// Strides of the same elements in another shape, by NumPy's rules. False if that requires a copy.
// Pre: both shapes have the same number of elements.
[[nodiscard]] bool find_strides(const ArrayLayout& layout, const ArrayNumbers& shape,
                                ArrayNumbers& strides);

// The layout of `layout` broadcast to that shape. ValueError if it does not fit.
[[nodiscard]] ArrayLayout broadcast(const ArrayLayout& layout, ArrayNumbers shape);

}  // namespace isthmus::python
