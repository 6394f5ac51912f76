#pragma once
// Making arrays in memory of their own.

#include "array_layout.hpp"
#include "buffer.hpp"

namespace isthmus::python {

// A new Buffer for an array: from the current resource, else the default pool. `queue` is a Queue.
// A resource may give another kind where that is allowed. What construct_buffer throws.
[[nodiscard]] nb::object make_array_buffer(std::size_t nbytes, isthmus_kind_t kind,
                                           nb::object queue, kinds_allowed allowed);

}  // namespace isthmus::python
