// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of isthmus.compat.dpctl.memory, and how their objects are created. Needs the
// interpreter's lock.

#include "buffer/buffer.hpp"
#include "dpctl/block.hpp"
#include "interop/usm_arguments.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object make_dpctl(PyTypeObject* type, const MemoryArguments& arguments);
[[nodiscard]] nb::object as_dpctl_memory(nb::handle object);

// A Buffer over the memory of an object of these classes, of dpctl's classes, or with
// __sycl_usm_array_interface__. ValueError for other objects.
[[nodiscard]] nb::object memory_in(nb::handle object);
// Copies all bytes of one Buffer to the start of another; blocks. OutOfRangeError if the source is
// longer.
void copy_between(const nb::object& target, const nb::object& source);

}  // namespace isthmus::python
