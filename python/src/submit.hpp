#pragma once
// Python functions given to queues.

#include "objects.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object submit_function(const queue& on, nb::handle function, nb::args buffers,
                                         nb::handle after);
// Lets no function begin any more and waits for those that run; Ctrl-C then ends the process.
void stop_python_functions();
void bind_submit(nb::module_& module);

}  // namespace isthmus::python
