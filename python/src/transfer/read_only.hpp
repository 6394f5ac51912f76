// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects that export their memory by several protocols, which may disagree on whether it may be
// written. Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

// Whether the buffer protocol or an array interface of `object`, dictionary or structure, reports
// its memory as read-only. The strictest one applies, because DLPack before 1.0 has no such flag.
// Arrays and buffers of this library agree in all protocols and are not queried. A protocol that
// raises is ignored; MemoryError and exceptions that are not an Exception, such as
// KeyboardInterrupt, are rethrown.
[[nodiscard]] bool reports_read_only(nb::handle object);
// Also considers the read-only flag of DLPack 1.0. To read it, exports the memory once, without
// waiting.
[[nodiscard]] bool is_read_only_by_any(nb::handle object);
// Whether another protocol than the buffer protocol reports read-only memory, for an object
// whose buffer protocol allows writing. Skips NumPy's own arrays, bytearray and memoryview, whose
// protocols always agree.
[[nodiscard]] bool is_read_only_elsewhere(nb::handle object);

}  // namespace isthmus::python
