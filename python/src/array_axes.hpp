#pragma once
// Axes and shapes as functions on arrays take them.

#include "array_layout.hpp"

namespace isthmus::python {

// In [0, ndim). NumPy's AxisError, both a ValueError and an IndexError, else; TypeError for what is
// no integer.
[[nodiscard]] std::size_t to_axis(nb::handle given, std::size_t ndim);
// An integer or a sequence as a tuple, of which nothing else is known. TypeError for all else.
[[nodiscard]] nb::object to_axis_tuple(nb::handle given);
// Of an integer or a sequence of them, which differ: else a ValueError.
[[nodiscard]] array_numbers to_axes(nb::handle given, std::size_t ndim);
// The same of all of them, in any order. ValueError for more or less.
[[nodiscard]] array_numbers to_permutation(nb::handle given, std::size_t ndim);

// Of `size` elements, from one integer or sequence, or several integers. One extent may be -1: what
// the others leave. ValueError where there are not so many, OutOfRangeError past 63 bits,
// TypeError.
[[nodiscard]] array_numbers to_shape_of(nb::handle given, std::int64_t size);

// The strides that elements have in another shape, by NumPy's rules; false where that takes a copy.
// Pre: both have as many elements.
[[nodiscard]] bool find_strides(const array_layout& of, const array_numbers& shape,
                                array_numbers& strides);

// Extents and strides of `of` as of that shape, by broadcasting. ValueError where it does not fit.
[[nodiscard]] array_layout broadcast(const array_layout& of, array_numbers shape);

}  // namespace isthmus::python
