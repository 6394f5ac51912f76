// SPDX-License-Identifier: Apache-2.0
#pragma once
// DLPack's numbers of SYCL devices: a device number is the index in dpctl's list of devices. It
// stands for memory in the default context that the devices of a platform share. Needs the
// interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

[[nodiscard]] bool is_sycl_queue(const Queue& queue);
// The number of the queue's device. -1 for queues of other backends and contexts, and if the
// program has not imported dpctl.
[[nodiscard]] int oneapi_number_of(const Queue& queue);
// The default queue of the device with that number; not valid if there is no such device.
[[nodiscard]] nb::object oneapi_queue(int number);

}  // namespace isthmus::python
