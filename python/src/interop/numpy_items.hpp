// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recognizes arrays, and the scalars and arrays of NumPy. Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

// Whether the object exports elements, by the buffer protocol or another one. Such an object is an
// array and not a number, even if it has __index__, which arrays of any size have.
[[nodiscard]] bool is_array(nb::handle object);
// Whether the object is a NumPy scalar, including text, dates and records.
[[nodiscard]] bool is_numpy_scalar(nb::handle object);
// Whether the object is a NumPy array or scalar.
[[nodiscard]] bool is_of_numpy(nb::handle object);

}  // namespace isthmus::python
