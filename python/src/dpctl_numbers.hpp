#pragma once
// Numbers as dpctl takes them, which is as Cython makes C's integers of them.

#include <cstdint>

#include "common.hpp"

namespace isthmus::python {

// Of whatever has __int__ or __index__. TypeError for what has neither, OverflowError outside
// `least` to `most`, and what __int__ raises.
[[nodiscard]] std::int64_t to_c_integer(nb::handle given, const char* name, std::int64_t least,
                                        std::int64_t most);
// Of whatever has __index__, OverflowError where that is no Py_ssize_t.
[[nodiscard]] std::int64_t to_ssize(nb::handle given, const char* name);
// A number of bytes, 1 or more. ValueError for others, OverflowError as above.
[[nodiscard]] std::size_t to_positive_size(nb::handle given);

}  // namespace isthmus::python
