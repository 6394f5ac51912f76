#pragma once
// Sizes of memory to be allocated: one that no address space has is memory that there is not, as
// any other that is too large.

#include "array_layout.hpp"
#include "buffer.hpp"
#include "errors.hpp"

namespace isthmus::python {

// USMAllocationError: `reason`, text, and for which kind on the device.
[[noreturn]] void raise_too_large(nb::handle reason, isthmus_kind_t kind, nb::handle device);

// What `make` returns; USMAllocationError where that is an OutOfRangeError: it does not fit in 63
// bits.
template <class Make>
[[nodiscard]] auto size_to_allocate(isthmus_kind_t kind, nb::handle device, Make make) {
  nb::object reason;
  try {
    return make();
  } catch (const too_far& failed) {
    reason = nb::str(failed.what());
  } catch (nb::python_error& failed) {
    if (!failed.matches(error_type(ISTHMUS_ERROR_OUT_OF_RANGE))) {
      throw;
    }
    reason = nb::str(failed.value());
  }
  raise_too_large(reason, kind, device);
}
// As to_size, but USMAllocationError from 2**63 on.
[[nodiscard]] std::size_t to_allocation_size(nb::handle value, const char* name,
                                             isthmus_kind_t kind, const queue& queue);
}  // namespace isthmus::python
