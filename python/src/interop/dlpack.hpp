// SPDX-License-Identifier: Apache-2.0
#pragma once
// DLPack: imports of other libraries' memory. Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object from_dlpack(nb::handle object, nb::handle queue);
// Converts an object with __dlpack__, or a capsule; `queue` as in from_dlpack. BufferError for a
// type that arrays do not support, or strides that do not step over whole, aligned elements.
[[nodiscard]] nb::object array_from_dlpack(nb::handle object, nb::handle queue);
// BufferError if a field of the tensor in the capsule is not usable. For capsules that are passed
// to NumPy, which checks nothing.
void require_valid_capsule(nb::handle capsule);
// The queue of CUDA's legacy default stream. There is one per device, adopted once, so that the
// completion of a later export replaces the completions of earlier ones.
[[nodiscard]] QueueHandle legacy_queue_of(const DeviceHandle& device);

}  // namespace isthmus::python
