#pragma once
// The classes of isthmus.compat.dpctl.memory, and how their objects are made.

#include "buffer.hpp"
#include "dpctl_block.hpp"
#include "memory_arguments.hpp"

namespace isthmus::python {

// Set when isthmus.compat.dpctl.memory is imported, which never goes: references that stay.
struct dpctl_types {
  nb::handle their_base;  // dpctl's _Memory
  nb::handle queue;       // dpctl's SyclQueue
  nb::handle classes[4];  // ours, by kind
  nb::handle theirs[4];   // of which they are subclasses
  nb::handle allocation_error, alignment_error;
  void** functions = nullptr;  // Cython's table for ours
};
extern dpctl_types dpctl;

[[nodiscard]] nb::object make_dpctl(PyTypeObject* type, const memory_arguments& asked);
[[nodiscard]] nb::object as_dpctl_memory(nb::handle object);

// A Buffer over the memory of an object of ours, dpctl's, or with the interface. ValueError for
// others.
[[nodiscard]] nb::object memory_in(nb::handle object);
// All bytes of one Buffer to the beginning of another; blocks. OutOfRangeError if it is longer.
void copy_between(const nb::object& to, const nb::object& from);

}  // namespace isthmus::python
