// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sizes of allocations. A size that exceeds every address space is reported as a lack of memory,
// like any other size that is too large. Needs the interpreter's lock.

#include "core/errors.hpp"
#include "core/objects.hpp"
#include "layout/layout.hpp"

namespace isthmus::python {

// Throws USMAllocationError with the text `reason` and the kind and device of the request.
[[noreturn]] void raise_too_large(nb::handle reason, isthmus_kind_t kind, nb::handle device);

// Returns what `make` returns. If that throws OutOfRangeError, because the size does not fit in 63
// bits, throws USMAllocationError.
template <class Make>
[[nodiscard]] auto size_to_allocate(isthmus_kind_t kind, nb::handle device, Make make) {
  nb::object reason;
  try {
    return make();
  } catch (const TooFar& failed) {
    reason = nb::str(failed.what());
  } catch (nb::python_error& failed) {
    if (!failed.matches(error_type(ISTHMUS_ERROR_OUT_OF_RANGE))) {
      throw;
    }
    reason = nb::str(failed.value());
  }
  raise_too_large(reason, kind, device);
}
// Like to_bytes, but USMAllocationError from 2**63 on.
[[nodiscard]] ISTHMUS_EXPORTED std::size_t to_allocation_size(nb::handle value, const char* name,
                                                              isthmus_kind_t kind,
                                                              const Queue& queue);
}  // namespace isthmus::python
