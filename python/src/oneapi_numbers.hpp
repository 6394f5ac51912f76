// SPDX-License-Identifier: Apache-2.0
#pragma once
// DLPack's device numbers of SYCL: for memory in the default context that the devices of a platform
// share, the index in dpctl's list of devices. Needs the interpreter's lock.

#include "objects.hpp"

namespace isthmus::python {

[[nodiscard]] bool is_sycl_queue(const Queue& queue);
// -1 for queues of other backends and contexts, and if the program has not imported dpctl.
[[nodiscard]] int oneapi_number_of(const Queue& queue);
// The default queue of that device; not valid if there is none.
[[nodiscard]] nb::object oneapi_queue(int number);

}  // namespace isthmus::python
