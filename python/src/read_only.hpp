#pragma once
// Objects that export their memory by several protocols, which may disagree on writing it.

#include "common.hpp"

namespace isthmus::python {

// Whether the buffer protocol or an array interface of `object`, dictionary or structure, says that
// its memory is read-only: the strictest one holds, as DLPack before 1.0 has no such flag. Arrays
// and buffers of this library say the same by each, and are not queried. A protocol that raises
// says nothing; MemoryError and what is no Exception, as KeyboardInterrupt, are thrown on.
[[nodiscard]] bool says_read_only(nb::handle object);
// The same, or by the flag of DLPack 1.0, for which memory is exported once and not waited for.
[[nodiscard]] bool is_read_only_by_any(nb::handle object);
// The same of an object whose buffer protocol allows writing. Skips NumPy's own arrays, bytearray
// and memoryview, whose protocols always agree.
[[nodiscard]] bool is_locked_elsewhere(nb::handle object);

}  // namespace isthmus::python
