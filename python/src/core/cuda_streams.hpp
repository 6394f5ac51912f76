// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA devices and streams as other libraries name them: by number and by handle. Needs the
// interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

// CUDA's number of a device; -1 for one of another backend. Needs no lock.
[[nodiscard]] ISTHMUS_EXPORTED int number_of_cuda_device(const isthmus_device_t* device) noexcept;
// The CUDA device number of the queue's device; negative for devices of other backends.
[[nodiscard]] int cuda_number_of(const Queue& queue);
[[nodiscard]] ISTHMUS_EXPORTED DeviceHandle find_cuda_device(int number);

// The number of a queue's stream in DLPack and __cuda_array_interface__. The queue's handle is
// exported from then on: the stream may have external work.
[[nodiscard]] std::uintptr_t export_stream(const Queue& queue);
// The same for a consumer that only makes the stream wait. The handle is exported as well, unless
// the queue is a default queue.
[[nodiscard]] std::uintptr_t stream_to_wait(const Queue& queue);
// Adopts the stream of that number as a queue, which may have external work. As in CUDA's own
// calls, 0 is the legacy default stream too, and 2 is the calling thread's default stream. `owner`,
// if valid, keeps the stream alive. Throws the library's errors.
[[nodiscard]] QueueHandle queue_of_number(const DeviceHandle& device, std::uintptr_t number,
                                          nb::handle owner);

// A queue on the stream of an object with __cuda_stream__, or on a stream of PyTorch or CuPy, which
// the queue keeps alive. If `device` is None, it is the device that the object reports or that its
// stream belongs to. TypeError for other objects.
[[nodiscard]] QueueHandle queue_of_stream(nb::handle stream, nb::handle device);
// The result of __cuda_stream__: (0, handle). TypeError for a queue of another backend.
[[nodiscard]] nb::object cuda_stream_of(const Queue& self);

}  // namespace isthmus::python
