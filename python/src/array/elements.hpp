// SPDX-License-Identifier: Apache-2.0
#pragma once
// Single elements of an array, read and written by the host. Needs the interpreter's lock, which
// waits and copies release.

#include "array/array.hpp"

namespace isthmus::python {

// Reads the element at `offset` of the buffer after pending work on the buffer has completed.
// Memory of kind shared or host is read directly. Memory of kind device is copied, which
// allow_scalar() must permit; otherwise TypeError.
[[nodiscard]] nb::object read_element(const TypedArray& array, std::size_t offset);
// Writes the element under the same conditions. Returns false, and writes nothing, if the value is
// not a number that the host can store directly; the permission for device kind was checked then.
[[nodiscard]] bool write_element(const TypedArray& array, std::size_t offset, nb::handle value);

// A view of one element.
[[nodiscard]] nb::object element_view(nb::handle object, const TypedArray& array,
                                      std::size_t offset);

}  // namespace isthmus::python
