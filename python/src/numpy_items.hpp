// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which objects NumPy has to convert. Needs the interpreter's lock.

#include "common.hpp"

namespace isthmus::python {

// Whether it is a NumPy scalar, text, dates and records included.
[[nodiscard]] bool is_numpy_scalar(nb::handle object);
// Whether it is a NumPy array or scalar.
[[nodiscard]] bool is_of_numpy(nb::handle object);

}  // namespace isthmus::python
