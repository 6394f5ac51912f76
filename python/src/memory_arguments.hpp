#pragma once
// The arguments that dpctl's classes of memory take, and so ours: (other, *, alignment, queue,
// copy).

#include "common.hpp"

namespace isthmus::python {

// But for `queue`, those that were not given are not valid.
struct memory_arguments {
  nb::handle other, alignment, copy;
  nb::handle queue = Py_None;
};

// Of a vectorcall, and of a call by tuple and dictionary. TypeError for others.
[[nodiscard]] memory_arguments read_memory_arguments(PyObject* const* arguments, std::size_t count,
                                                     PyObject* names);
[[nodiscard]] memory_arguments read_memory_arguments(PyObject* arguments, PyObject* named);

}  // namespace isthmus::python
