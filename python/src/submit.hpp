#pragma once
// Python functions given to queues.

#include "objects.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object submit_function(const queue& on, nb::handle function, nb::args buffers,
                                         nb::handle after);
// The library calls Python no more; waits for calls under way, and then Ctrl-C ends the process.
void stop_callbacks();
void bind_submit(nb::module_& module);

}  // namespace isthmus::python
