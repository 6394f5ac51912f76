#pragma once
// DLPack's numbers of SYCL's devices: of memory in the context that a platform's devices share by
// default, the place in dpctl's list of devices.

#include "objects.hpp"

namespace isthmus::python {

[[nodiscard]] bool is_sycls(const queue& on);
// -1 for queues of other back-ends and contexts, and where the program has not imported dpctl.
[[nodiscard]] int oneapi_number_of(const queue& on);
// The default queue of that device; not valid if there is none.
[[nodiscard]] nb::object oneapi_queue(int number);

}  // namespace isthmus::python
