#pragma once
// What NumPy makes arrays of.

#include "common.hpp"

namespace isthmus::python {

// Whether it is one of NumPy's own scalars; also text, dates and records.
[[nodiscard]] bool is_numpy_scalar(nb::handle object);
// Whether it is one of NumPy's own arrays or scalars.
[[nodiscard]] bool is_of_numpy(nb::handle object);

}  // namespace isthmus::python
