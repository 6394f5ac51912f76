// SPDX-License-Identifier: Apache-2.0
#include "memory/sizes.hpp"

#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/interned.hpp"

namespace isthmus::python {

void raise_too_large(nb::handle reason, isthmus_kind_t kind, nb::handle device) {
  raise_python(error_type(ISTHMUS_ERROR_OUT_OF_MEMORY), "%U, nor in any '%U' memory of %s",
               reason.ptr(), kind_name(kind).ptr(), describe(*device_of(device)).c_str());
}

std::size_t to_allocation_size(nb::handle value, const char* name, isthmus_kind_t kind,
                               const Queue& queue) {
  return size_to_allocate(kind, queue.device_object,
                          [&] { return to_bytes(value, name, queue.device_object, kind); });
}

}  // namespace isthmus::python
