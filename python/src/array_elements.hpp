#pragma once
// Single elements of an array, read and written by the host.

#include "typed_array.hpp"

namespace isthmus::python {

// The element at `offset` of the buffer, once what is pending on it has ended: on shared and host
// kinds directly, on device kind by a copy, where allow_scalar() allows it, else a TypeError.
[[nodiscard]] nb::object read_element(const typed_array& of, std::size_t offset);
// The same of a write. False where the value is no number that the host sets directly: nothing is
// done then, but a device kind was allowed.
[[nodiscard]] bool write_element(const typed_array& of, std::size_t offset, nb::handle value);

// A view of one element.
[[nodiscard]] nb::object element_view(nb::handle object, const typed_array& of, std::size_t offset);

}  // namespace isthmus::python
