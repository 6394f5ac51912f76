// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exports of buffers, and of arrays over them: interface dictionaries, NumPy, bytes, DLPack. Needs
// the interpreter's lock.

#include "buffer/array_view.hpp"

namespace isthmus::python {

// The dictionaries of the interfaces; AttributeError if the memory has none.
[[nodiscard]] nb::object usm_interface(const ArrayView& view);
[[nodiscard]] nb::object cuda_interface(const ArrayView& view);
// Bytes at `pointer` as a dictionary of __sycl_usm_array_interface__, with that flag beside the
// address, which means read-only here, and writable in dpctl.
[[nodiscard]] ISTHMUS_EXPORTED nb::object usm_bytes_interface(const void* pointer,
                                                              std::size_t nbytes, bool flag,
                                                              nb::handle syclobj);
// Through the buffer protocol of `self`, whose view waits for pending work.
[[nodiscard]] nb::object array_interface(nb::handle self, const ArrayView& view);
// For NumPy: an array over the memory of `self`, which has the buffer protocol.
[[nodiscard]] nb::object to_array(nb::handle self, const Buffer& buffer, nb::handle dtype,
                                  nb::handle copy);
// A new ndarray of that type and shape. Imports NumPy.
[[nodiscard]] nb::object to_numpy(const ArrayView& view);

[[nodiscard]] nb::object to_dlpack(const ArrayView& view, nb::handle stream, nb::handle max_version,
                                   nb::handle device, nb::handle copy);
[[nodiscard]] nb::object dlpack_device(const Buffer& buffer);

[[nodiscard]] ISTHMUS_EXPORTED nb::object to_bytes(nb::handle self);
// A new uint8 ndarray. Imports NumPy.
[[nodiscard]] ISTHMUS_EXPORTED nb::object to_numpy(nb::handle self);
// The queue to report together with the memory. BufferError if the memory belongs to another
// device, which work on that queue may not be able to access.
[[nodiscard]] const Queue& queue_to_export(const Buffer& buffer);

}  // namespace isthmus::python
