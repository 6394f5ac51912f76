#pragma once
// Sizes of memory to be allocated: one that no address space has is memory that there is not, as
// any other that is too large.

#include "array_layout.hpp"
#include "buffer.hpp"
#include "errors.hpp"

namespace isthmus::python {

// As to_size, but USMAllocationError from 2**63 on.
[[nodiscard]] std::size_t to_allocation_size(nb::handle value, const char* name,
                                             isthmus_kind_t kind, const queue& queue);
// USMAllocationError: `reason`, text, and for which kind on the queue's device.
[[noreturn]] void raise_too_large(nb::handle reason, isthmus_kind_t kind, const queue& queue);

// What `make` returns, a layout; USMAllocationError where that is an OverflowError.
template <class Make>
[[nodiscard]] shared_layout layout_to_allocate(isthmus_kind_t kind, const queue& queue, Make make) {
  nb::object reason;
  try {
    return make();
  } catch (const too_far& failed) {
    reason = nb::str(failed.what());
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_OverflowError)) {
      throw;
    }
    reason = nb::str(failed.value());
  }
  raise_too_large(reason, kind, queue);
}

}  // namespace isthmus::python
