// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes of isthmus.compat.dpctl.memory, and how their objects are created. Needs the
// interpreter's lock.

#include "buffer/buffer.hpp"
#include "dpctl/block.hpp"
#include "interop/usm_arguments.hpp"

namespace isthmus::python {

// Set when isthmus.compat.dpctl.memory is imported. That module is never unloaded, so the
// references are never released.
struct DpctlTypes {
  nb::handle memory_base;      // dpctl's _Memory
  nb::handle queue;            // dpctl's SyclQueue
  nb::handle classes[4];       // Isthmus' classes, by kind
  nb::handle base_classes[4];  // their base classes, by kind
  nb::handle allocation_error, alignment_error;
  void** functions = nullptr;  // Cython's table of Isthmus' classes
};
extern DpctlTypes dpctl;

[[nodiscard]] nb::object make_dpctl(PyTypeObject* type, const MemoryArguments& arguments);
[[nodiscard]] nb::object as_dpctl_memory(nb::handle object);

// A Buffer over the memory of an object of these classes, of dpctl's classes, or with
// __sycl_usm_array_interface__. ValueError for other objects.
[[nodiscard]] nb::object memory_in(nb::handle object);
// Copies all bytes of one Buffer to the start of another; blocks. OutOfRangeError if the source is
// longer.
void copy_between(const nb::object& target, const nb::object& source);

}  // namespace isthmus::python
