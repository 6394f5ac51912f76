// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading the dictionaries __sycl_usm_array_interface__, version 1, and __cuda_array_interface__,
// versions 2 and 3, of other libraries' objects. Needs the interpreter's lock.

#include <optional>

#include "buffer/buffer.hpp"
#include "layout/layout.hpp"

namespace isthmus::python {

// The access that the caller needs. For memory to be adopted it is `write`, as the memory may be
// written later.
enum class Access { read, write };

struct ArrayInterface {
  // The bounding box of all elements, of at least one element. Kind UNKNOWN means the kind that the
  // driver reports.
  Adoption memory{};
  bool empty = false;  // there are no elements
  // The queue of syclobj, or of `stream`, which is adopted if there is one; otherwise the default
  // queue of the pointer's device.
  nb::object queue;
  bool contiguous = true;  // in C or Fortran order
  ArrayLayout layout{};
  nb::object typestr{};
};

// Returns std::nullopt if the object has neither interface; if it has both, SYCL's is read. With
// Access::write the memory is read-only if any protocol of the object reports that. No
// Python error may be set before.
//
// Checks, in this order: version, data, syclobj or stream and mask, shape, typestr, strides, offset
// (SYCL only). ValueError for impossible values, TypeError for types. The pointer itself is checked
// by adoption.
[[nodiscard]] ISTHMUS_EXPORTED std::optional<ArrayInterface> read_interface(nb::handle object,
                                                                            Access access);
// The kind of memory that the queue's context knows; UNKNOWN for other memory.
[[nodiscard]] isthmus_kind_t query_kind(const Queue& queue, const void* pointer);
// A Buffer over the memory that the interface of `object` describes. Keeps the object alive.
[[nodiscard]] ISTHMUS_EXPORTED nb::object adopt_interface(nb::handle object,
                                                          ArrayInterface interface);

}  // namespace isthmus::python
