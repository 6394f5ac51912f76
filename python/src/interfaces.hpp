#pragma once
// The dictionary __sycl_usm_array_interface__, version 1, as it is read from other libraries'
// objects.

#include "buffer.hpp"

namespace isthmus::python {

struct told_interface {
  adoption what{};  // the box around all elements, one at least; kind UNKNOWN: as the driver tells
  bool empty = false;  // there are no elements
  nb::object queue;
  bool contiguous = true;  // in C or Fortran order
};

[[nodiscard]] bool has_interface(nb::handle object);
// Checks, in this order, version, data, syclobj, shape, typestr, strides, offset. ValueError for
// values that cannot be, TypeError for types; the pointer itself is checked by adoption.
[[nodiscard]] told_interface read_interface(nb::handle object);

}  // namespace isthmus::python
