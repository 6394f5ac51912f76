// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which objects are arrays, and which NumPy has to convert. Needs the interpreter's lock.

#include "common.hpp"

namespace isthmus::python {

// Whether the object exports elements, by the buffer protocol or another one. Such an object is an array,
// not a number, whatever methods it has: arrays of any size have __index__.
[[nodiscard]] bool is_array(nb::handle object);
// Whether the object is a NumPy scalar, including text, dates and records.
[[nodiscard]] bool is_numpy_scalar(nb::handle object);
// Whether the object is a NumPy array or scalar.
[[nodiscard]] bool is_of_numpy(nb::handle object);

}  // namespace isthmus::python
