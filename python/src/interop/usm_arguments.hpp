// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of the memory classes of dpctl and isthmus.memory: (other, *, alignment, queue,
// copy). Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

// Arguments that were not passed are not valid, except `queue`.
struct MemoryArguments {
  nb::handle other, alignment, copy;
  nb::handle queue = Py_None;
};

// Parses the arguments of a vectorcall, or of a call with a tuple and a dictionary. TypeError for
// other arguments.
[[nodiscard]] ISTHMUS_EXPORTED MemoryArguments read_memory_arguments(PyObject* const* arguments,
                                                                     std::size_t count,
                                                                     PyObject* names);
[[nodiscard]] ISTHMUS_EXPORTED MemoryArguments read_memory_arguments(PyObject* arguments,
                                                                     PyObject* named);

}  // namespace isthmus::python
