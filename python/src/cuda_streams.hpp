#pragma once
// CUDA's devices and streams as other libraries name them: by number and by handle.

#include "objects.hpp"

namespace isthmus::python {

// CUDA's own number of the queue's device; negative if that is none of CUDA's.
[[nodiscard]] int cuda_number_of(const queue& on);
[[nodiscard]] device_handle find_cuda_device(int number);

// The number that DLPack and __cuda_array_interface__ have for a queue's stream. The queue's handle
// counts as lent then: there may be work that we do not know.
[[nodiscard]] std::uintptr_t lend_stream(const queue& of);
// The same for whoever only has the stream wait. It is lent all the same, but for a default queue.
[[nodiscard]] std::uintptr_t stream_to_wait(const queue& of);
// A queue on a stream by that number, adopted, as there may be work of others on it; 0, in CUDA's
// own calls, is the legacy default stream too, and 2 the calling thread's own. `owner`, if
// valid, keeps the stream alive. The library's errors.
[[nodiscard]] queue_handle queue_of_number(const device_handle& on, std::uintptr_t number,
                                           nb::handle owner);

// The queue of an object with __cuda_stream__, of a stream of PyTorch's or CuPy's, which it keeps
// alive. `device` None: the one that the object tells, or that its stream is of. TypeError for any
// other object.
[[nodiscard]] queue_handle queue_of_stream(nb::handle stream, nb::handle device);
// What __cuda_stream__ gives: (0, handle). TypeError for a queue of another back-end.
[[nodiscard]] nb::object cuda_stream_of(const queue& self);

}  // namespace isthmus::python
