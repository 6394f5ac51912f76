#pragma once
// The dictionaries __sycl_usm_array_interface__, version 1, and __cuda_array_interface__, versions
// 2 and 3, as they are read from other libraries' objects.

#include <optional>

#include "array_layout.hpp"
#include "buffer.hpp"

namespace isthmus::python {

// Memory that is to be adopted may be written later on.
enum class access { read, write };

struct told_interface {
  adoption what{};  // the box around all elements, one at least; kind UNKNOWN: as the driver tells
  bool empty = false;  // there are no elements
  // By syclobj; by `stream`, an adopted one where it tells of one, else the default queue of the
  // pointer's device.
  nb::object queue;
  bool contiguous = true;  // in C or Fortran order
  array_layout layout{};
  nb::object typestr{};
};

// Nothing if it has none of them; SYCL's is read if it has both. Where the memory is `wanted` for
// writing, it is read-only if any protocol of the object says so. Pre: no Python error is set.
//
// Checks, in this order, version, data, syclobj or stream and mask, shape, typestr, strides, offset
// (SYCL's alone). ValueError for values that cannot be, TypeError for types; the pointer itself is
// checked by adoption.
[[nodiscard]] std::optional<told_interface> read_interface(nb::handle object, access wanted);
// Of memory that the queue's context knows; UNKNOWN for other memory.
[[nodiscard]] isthmus_kind_t kind_on(const queue& on, const void* pointer);
// A Buffer over what the interface of `object` tells, which it keeps alive.
[[nodiscard]] nb::object adopt_interface(nb::handle object, told_interface told);

}  // namespace isthmus::python
