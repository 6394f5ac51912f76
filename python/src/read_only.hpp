#pragma once
// Objects that export their memory by several protocols, which may disagree on writing it.

#include "common.hpp"

namespace isthmus::python {

// Whether the buffer protocol or an interface dictionary of `object` says that its memory is
// read-only: the strictest one holds, as DLPack before 1.0 has no such flag. Arrays and buffers of
// this library say the same by each, and are not queried. A protocol that raises says nothing;
// what is no Exception, as KeyboardInterrupt, is thrown on.
[[nodiscard]] bool says_read_only(nb::handle object);
// The same of an object whose buffer protocol allows writing; no cost for what has no dictionary
// of NumPy's, nor for NumPy's own arrays, which do not disagree.
[[nodiscard]] bool is_locked_elsewhere(nb::handle object);

}  // namespace isthmus::python
