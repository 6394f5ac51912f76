// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python functions submitted to queues. Needs the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object submit_function(const Queue& queue, nb::handle function, nb::args buffers,
                                         nb::handle after);
// Stops calls from the library into Python. Waits for calls in progress; Ctrl-C during that wait
// ends the process.
void stop_callbacks();

}  // namespace isthmus::python
