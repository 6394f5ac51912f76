// SPDX-License-Identifier: Apache-2.0
// Sharing device memory with other processes.

#include <cstring>

#include "buffer/buffer.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/gil.hpp"
#include "core/owners.hpp"
#include "core/waiting.hpp"
#include "interop/bindings.hpp"

namespace isthmus::python {
namespace {

struct IpcHandle {
  isthmus_ipc_handle_t raw = sized<isthmus_ipc_handle_t>();
};

nb::object bytes_of(const IpcHandle& self) {
  return nb::bytes(reinterpret_cast<const char*>(self.raw.handle), sizeof self.raw.handle);
}

void init_handle(IpcHandle* self, nb::handle handle, nb::handle offset, nb::handle nbytes) {
  IpcHandle ipc;
  if (PyBytes_Check(handle.ptr()) == 0) {
    raise_wrong_type(handle, "handle must be bytes");
  }
  if (PyBytes_GET_SIZE(handle.ptr()) != sizeof ipc.raw.handle) {
    raise_python(PyExc_ValueError, "handle must be %zu bytes, not %zd", sizeof ipc.raw.handle,
                 PyBytes_GET_SIZE(handle.ptr()));
  }
  std::memcpy(ipc.raw.handle, PyBytes_AS_STRING(handle.ptr()), sizeof ipc.raw.handle);
  ipc.raw.offset = to_size(offset, "offset");
  ipc.raw.nbytes = to_size(nbytes, "nbytes");
  new (self) IpcHandle{ipc};
}

nb::object reduce(nb::handle self) {
  const auto& raw = nb::inst_ptr<IpcHandle>(self)->raw;
  return nb::make_tuple(self.type(), nb::make_tuple(bytes_of(*nb::inst_ptr<IpcHandle>(self)),
                                                    raw.offset, raw.nbytes));
}

bool are_same(const IpcHandle& a, const IpcHandle& b) {
  return std::memcmp(a.raw.handle, b.raw.handle, sizeof a.raw.handle) == 0 &&
         a.raw.offset == b.raw.offset && a.raw.nbytes == b.raw.nbytes;
}

// Waits before the library call, so that Ctrl-C interrupts the wait.
nb::object share(const Buffer& self) {
  check(wait_for_buffer(self.raw.get(), -1));
  IpcHandle handle;
  check(without_lock([&] { return isthmus_buffer_ipc_handle(self.raw.get(), &handle.raw); }));
  return nb::cast(handle);
}

nb::object open(nb::handle argument, nb::handle device, nb::handle queue) {
  if (!nb::isinstance<IpcHandle>(argument)) {
    raise_wrong_type(argument, "handle must be an isthmus.IpcHandle");
  }
  const auto& handle = *nb::inst_ptr<IpcHandle>(argument);
  drain_deferred();
  nb::object queue_object = to_queue(queue, device);
  BufferHandle opened;
  check(without_lock([&] {
    return isthmus_buffer_open_ipc(&handle.raw, queue_of(queue_object)->raw.get(), opened.out());
  }));
  return make_instance<Buffer>(types.buffer, std::move(opened), std::move(queue_object),
                               nb::object{}, ISTHMUS_KIND_DEVICE, handle.raw.nbytes, false);
}

}  // namespace

void bind_ipc(nb::module_& module, nb::class_<Buffer>& buffer) {
  nb::class_<IpcHandle>(
      module, "IpcHandle",
      "A handle of device memory, for another process: IpcHandle(handle, offset, nbytes), as\n"
      "Buffer.ipc_handle() returns it. Can be pickled; open_ipc() opens it in the other\n"
      "process.")
      .def("__init__", &init_handle, nb::arg("handle").none(), nb::arg("offset").none(),
           nb::arg("nbytes").none(),
           nb::sig("def __init__(self, handle: bytes, offset: int, nbytes: int) -> None"))
      .def_prop_ro("handle", &bytes_of, nb::sig("def handle(self) -> bytes"),
                   "64 bytes: CUDA's CUipcMemHandle of the whole allocation.")
      .def_prop_ro(
          "offset", [](const IpcHandle& self) { return self.raw.offset; },
          "Offset of the memory's first byte within that allocation.")
      .def_prop_ro(
          "nbytes", [](const IpcHandle& self) { return self.raw.nbytes; }, "Its size in bytes.")
      .def(
          "__eq__",
          [](const IpcHandle& self, nb::handle other) {
            return nb::isinstance<IpcHandle>(other) &&
                   are_same(self, *nb::inst_ptr<IpcHandle>(other));
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__",
           [](const IpcHandle& self) {
             return nb::hash(nb::make_tuple(bytes_of(self), self.raw.offset, self.raw.nbytes));
           })
      .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
      .def(
          "__repr__",
          [](const IpcHandle& self) {
            return nb::steal(
                PyUnicode_FromFormat("<isthmus.IpcHandle of %llu bytes at offset %llu>",
                                     static_cast<unsigned long long>(self.raw.nbytes),
                                     static_cast<unsigned long long>(self.raw.offset)));
          },
          nb::sig("def __repr__(self) -> str"));
  module.def(
      "open_ipc", &open, nb::arg("handle").none(), nb::kw_only(), nb::arg("device") = nb::none(),
      nb::arg("queue") = nb::none(),
      nb::sig("def open_ipc(handle: IpcHandle, *, device: Device | str | None = None, queue: Queue "
              "| None = None) -> Buffer"),
      "A Buffer on device memory of another process of this machine, which created the handle\n"
      "with Buffer.ipc_handle(). `device` or `queue` must be of the device that the memory is on;\n"
      "neither: the current queue. free(), the end of `with` or dropping the last reference\n"
      "closes the handle, which waits for all work on the device. A handle may be opened several\n"
      "times; operations on these buffers are ordered like those on one buffer. The processes\n"
      "must synchronize their uses of the memory by other means. Raises InvalidArgumentError for\n"
      "a handle of this process and for an object that is not a handle, OutOfRangeError if not\n"
      "all of the bytes exist, WrongContextError for memory of another device, UnsupportedError\n"
      "for a device without the capability \"ipc\".");
  buffer.def(
      "ipc_handle", &share, nb::sig("def ipc_handle(self) -> IpcHandle"),
      "A handle for another process of this machine, which opens it with isthmus.open_ipc().\n"
      "Waits for the work pending on the bytes: queues of the other process are not ordered\n"
      "with those here. Keep the buffer until the other processes have closed the handle: freed\n"
      "memory of a pool is reused while they can still access it. Raises UnsupportedError for a\n"
      "device without the capability \"ipc\", and for all but device memory that cannot move:\n"
      "memory of the driver's own allocator, or of PoolResource(remap=False).\n"
      "InvalidArgumentError for 0 bytes.");
}

}  // namespace isthmus::python
