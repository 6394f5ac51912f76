// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts numbers as dpctl does, by Cython's rules for C integers. Needs the interpreter's lock.

#include <cstdint>

#include "core/common.hpp"

namespace isthmus::python {

// Converts an object with __int__ or __index__. TypeError if it has neither, OverflowError outside
// `min` to `max`; exceptions of __int__ propagate.
[[nodiscard]] std::int64_t to_c_integer(nb::handle argument, const char* name, std::int64_t min,
                                        std::int64_t max);
// Converts an object with __index__. OverflowError if it does not fit in a Py_ssize_t.
[[nodiscard]] std::int64_t to_ssize(nb::handle argument, const char* name);
// A number of bytes, 1 or more. ValueError for other numbers, OverflowError as above.
[[nodiscard]] std::size_t to_positive_size(nb::handle argument);

}  // namespace isthmus::python
