// SPDX-License-Identifier: Apache-2.0
#include "buffer/buffer.hpp"

#include <memory>

#include "buffer/bindings.hpp"
#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/owners.hpp"
#include "core/waiting.hpp"

namespace isthmus::python {

Buffer& require_buffer(nb::handle object) {
  auto* found = buffer_of(object);
  if (found == nullptr &&
      PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(types.buffer.ptr())) != 0) {
    raise_python(PyExc_ValueError, "Buffer.__init__() was not called");
  }
  if (found == nullptr) {
    raise_wrong_type(object, "expected a Buffer");
  }
  return *found;
}

isthmus_buffer_info_t info_of(const Buffer& buffer) {
  return read_info<isthmus_buffer_info_t>(isthmus_buffer_info, buffer.raw.get());
}

nb::object address_of(const Buffer& self) {
  const bool freed_or_empty = isthmus_buffer_pointer(self.raw.get()) == nullptr;
  if (freed_or_empty || !self.address.is_valid()) {
    self.address = nb::steal(PyLong_FromVoidPtr(info_of(self).pointer));
  }
  return self.address;
}

void* export_to_host(const Buffer& buffer) {
  drain_deferred();
  check(wait_for_buffer(buffer.raw.get(), -1));
  void* pointer = nullptr;
  // The first call waits for operations submitted since the wait above. Ctrl-C does not interrupt
  // this wait. For device kind, the library exports only to queues.
  check(without_lock([&] {
    return host_reachable(buffer.kind)
               ? isthmus_buffer_export(buffer.raw.get(), &pointer)
               : isthmus_buffer_export_to_queue(buffer.raw.get(), nullptr, &pointer);
  }));
  return pointer;
}

void end_export(const Buffer& buffer) noexcept {
  const GilRelease released{free_may_wait(buffer)};
  isthmus_buffer_unexport(buffer.raw.get());
}

nb::handle view_type(const Buffer& buffer, nb::handle object) noexcept {
  const bool memory = instance_of<Buffer>(types.memory[0], object) != nullptr;
  return memory ? types.memory[buffer.kind] : types.buffer;
}

namespace {

bool is_freed(const Buffer& self) {
  auto info = sized<isthmus_buffer_info_t>();
  const auto status = isthmus_buffer_info(self.raw.get(), &info);
  if (status != ISTHMUS_ERROR_CLOSED) {
    check(status);
  }
  return status == ISTHMUS_ERROR_CLOSED;
}

nb::object base_of(const Buffer& self) { return self.base.is_valid() ? self.base : nb::none(); }

Py_ssize_t length_of(PyObject* self) noexcept {
  const auto* buffer = buffer_of(self);
  if (buffer == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Buffer.__init__() was not called");
    return -1;
  }
  return static_cast<Py_ssize_t>(buffer->nbytes);
}

nb::object slice_of(nb::handle self, nb::handle key) {
  const auto& buffer = require_buffer(self);
  if (PySlice_Check(key.ptr()) == 0) {
    raise_python(PyExc_TypeError,
                 "a Buffer is indexed by slices, like buf[100:200], not by %.100s; for single "
                 "bytes use memoryview(buf) if the host can access the memory, or tobytes()",
                 Py_TYPE(key.ptr())->tp_name);
  }
  auto [start, stop, step] = to_slice(key);
  if (step != 1) {
    raise_python(PyExc_ValueError, "slices of a Buffer must have step 1, not %zd", step);
  }
  const auto length =
      PySlice_AdjustIndices(static_cast<Py_ssize_t>(buffer.nbytes), &start, &stop, step);
  const auto nbytes = static_cast<std::size_t>(length);
  auto slice = make_handle<BufferHandle>(isthmus_buffer_slice, buffer.raw.get(),
                                         static_cast<std::size_t>(start), nbytes);
  return make_instance<Buffer>(view_type(buffer, self), std::move(slice), buffer.queue_object,
                               nb::borrow(self), buffer.kind, nbytes, buffer.read_only);
}

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  return result_of([=] { return slice_of(self, key); });
}

// Empty memory has no address, but views of it need one.
char empty_memory[1];

void require_viewable(const Buffer& buffer, int flags) {
  if (!host_may_access(buffer)) {
    raise_python(PyExc_BufferError,
                 "memory of kind 'device' cannot be accessed by the host: copy it with to_numpy(), "
                 "tobytes() or copy_to(), or use it in queue.submit()");
  }
  if (buffer.read_only && (flags & PyBUF_WRITABLE) != 0) {
    raise_python(error_type(ISTHMUS_ERROR_READ_ONLY), "this buffer is read-only");
  }
  warn_if_not_portable(buffer.kind);
}

int get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  if (length_of(self) < 0) {
    return -1;
  }
  const auto& buffer = *buffer_of(self);
  void* pointer = export_view(buffer, flags);
  if (pointer == nullptr) {
    return -1;
  }
  if (PyBuffer_FillInfo(view, self, pointer, static_cast<Py_ssize_t>(buffer.nbytes),
                        buffer.read_only ? 1 : 0, flags) != 0) {
    end_export(buffer);
    return -1;
  }
  return 0;
}

void release_view(PyObject* self, Py_buffer*) noexcept { end_export(*buffer_of(self)); }

nb::object adopt(nb::handle pointer, nb::handle nbytes, nb::handle kind, nb::handle device,
                 nb::handle queue, nb::handle owner, nb::handle read_only) {
  const Adoption adoption{to_pointer(pointer, "ptr"), to_bytes(nbytes, "nbytes"),
                          kind.is_none() ? ISTHMUS_KIND_UNKNOWN : to_kind(kind),
                          to_flag(read_only, "read_only")};
  return make_buffer(types.buffer, [&](Buffer* buffer) {
    construct_adopted(buffer, adoption, to_queue(queue, device),
                      owner.is_none() ? nb::object{} : nb::borrow(owner));
  });
}

constexpr const char* k_owner_capsule = "isthmus_owner_t";

void release_owner(PyObject* capsule) noexcept {
  auto* owner = static_cast<isthmus_owner_t*>(PyCapsule_GetPointer(capsule, k_owner_capsule));
  const GilRelease released;
  owner->release(owner->object);
  delete owner;
}

nb::object disown(const Buffer& self) {
  void* pointer = nullptr;
  auto owner = std::make_unique<isthmus_owner_t>();
  check(isthmus_buffer_disown(self.raw.get(), &pointer, owner.get()));
  const nb::object capsule = nb::steal(PyCapsule_New(owner.get(), k_owner_capsule, &release_owner));
  if (!capsule.is_valid()) {
    {
      const GilRelease released;
      owner->release(owner->object);
    }
    raise_set();
  }
  static_cast<void>(owner.release());  // the capsule owns it
  return nb::make_tuple(nb::steal(PyLong_FromVoidPtr(pointer)), capsule);
}

void init_buffer(Buffer* self, nb::handle nbytes, nb::handle kind, nb::handle device,
                 nb::handle queue, nb::handle alignment, nb::handle source) {
  construct_buffer(self, BufferRequest{nbytes, kind.is_none() ? nb::handle{} : kind, device, queue,
                                       alignment, source});
}

}  // namespace

void* export_view(const Buffer& buffer, int flags) noexcept {
  void* pointer = nullptr;
  const auto waited = nb::steal(result_of([&] {
    require_viewable(buffer, flags);
    pointer = export_to_host(buffer);
    return nb::none();
  }));
  if (!waited.is_valid()) {
    return nullptr;
  }
  return pointer != nullptr ? pointer : empty_memory;
}

nb::object on_queue(nb::handle self, nb::handle queue) {
  if (queue_of(queue) == nullptr) {
    raise_wrong_type(queue, "queue must be a Queue");
  }
  return make_buffer(view_type(require_buffer(self), self),
                     [&](Buffer* buffer) { construct_alias(buffer, self, queue); });
}

void record_use(const Buffer& self, nb::handle user) {
  if (const auto* queue = queue_of(user)) {
    check(isthmus_buffer_record_queue(self.raw.get(), queue->raw.get()));
  } else if (const auto* until = event_of(user)) {
    check(isthmus_buffer_record_event(self.raw.get(), until->raw.get()));
  } else {
    raise_wrong_type(user, "record() needs a Queue or an Event");
  }
}

PyType_Slot buffer_slots[] = {{Py_mp_length, reinterpret_cast<void*>(&length_of)},
                              {Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
                              {Py_bf_getbuffer, reinterpret_cast<void*>(&get_view)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_view)},
                              {Py_tp_vectorcall, reinterpret_cast<void*>(&buffer_vectorcall)},
                              {0, nullptr}};

namespace {

void bind_properties(nb::class_<Buffer>& bound) {
  bound.def_prop_ro(
           "nbytes", [](const Buffer& self) { return self.nbytes; }, "Its size in bytes.")
      .def_prop_ro(
          "kind", [](const Buffer& self) { return kind_name(self.kind); },
          nb::sig("def kind(self) -> str"), "\"device\", \"shared\" or \"host\".")
      .def_prop_ro(
          "alignment", [](const Buffer& self) { return info_of(self).alignment; },
          "Its alignment in bytes: the requested one or the device's default. Raises ClosedError\n"
          "if the buffer was freed.")
      .def_prop_ro(
          "queue", [](const Buffer& self) { return self.queue_object; },
          nb::sig("def queue(self) -> Queue"), "The queue whose order its operations follow.")
      .def_prop_ro(
          "device", [](const Buffer& self) { return queue_of_buffer(self).device_object; },
          nb::sig("def device(self) -> Device"), "The device of its queue.")
      .def_prop_ro(
          "context", [](const Buffer& self) { return queue_of_buffer(self).context_object; },
          nb::sig("def context(self) -> Context"), "The context that the memory belongs to.")
      .def_prop_ro(
          "base", &base_of, nb::sig("def base(self) -> object"),
          "The Buffer whose memory this one shares, if it is a view, or the owner of adopted\n"
          "memory; kept alive by this buffer. None if this buffer owns its memory.")
      .def_prop_ro("ptr", &address_of, nb::sig("def ptr(self) -> int"),
                   "Its address; 0 if it has 0 bytes. Raises ClosedError if the buffer was freed.")
      .def_prop_ro(
          "read_only", [](const Buffer& self) { return self.read_only; },
          "Whether writes are rejected.")
      .def_prop_ro("freed", &is_freed, "Whether the buffer, or one that contains it, was freed.");
}

void wait(const Buffer& self, nb::handle timeout) {
  drain_deferred();
  check(wait_for_buffer(self.raw.get(), to_timeout(timeout)));
}

void bind_methods(nb::class_<Buffer>& bound) {
  bound
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> None"),
           "Waits for the work pending on this memory, on any queue, for at most `timeout`\n"
           "seconds (None: indefinitely; 0 polls). Errors of operations are reported by their own\n"
           "events. Releases the interpreter's lock; Ctrl-C interrupts. Raises WaitTimeoutError,\n"
           "ClosedError, and DependencyError if a copy of a unified buffer that should have\n"
           "written some of the bytes failed and nothing has written them since.")
      .def("free", &free_buffer,
           "Frees this buffer: using it, or its slices, afterwards raises ClosedError. The memory\n"
           "is returned after the last operation on it has completed and the last view of it (a\n"
           "NumPy array, a memoryview) was released. Never blocks. Freeing twice does nothing.\n"
           "Freeing a slice affects only the slice.")
      .def("on_queue", &on_queue, nb::arg("queue").none(),
           nb::sig("def on_queue(self, queue: Queue) -> Buffer"),
           "A view of the same memory whose operations run on `queue`. It keeps this buffer\n"
           "alive. Raises WrongContextError for a queue of another context.")
      .def("record", &record_use, nb::arg("queue_or_event").none(),
           nb::sig("def record(self, queue_or_event: Queue | Event) -> None"),
           "Declares that external work uses the memory. Until the event, or all work now on the\n"
           "queue, has completed, the memory is not released, and operations on other queues\n"
           "wait. Does not block.")
      .def_static(
          "adopt", &adopt, nb::arg("ptr").none(), nb::arg("nbytes").none(), nb::kw_only(),
          nb::arg("kind") = nb::none(), nb::arg("device") = nb::none(),
          nb::arg("queue") = nb::none(), nb::arg("owner") = nb::none(),
          nb::arg("read_only").none() = false,
          nb::sig("def adopt(ptr: int, nbytes: ByteCount, *, kind: str | None = None, "
                  "device: Device | str | None = None, queue: Queue | None = None, owner: object = "
                  "None, read_only: bool = False) -> Buffer"),
          "A buffer over memory of another owner, which `owner` keeps alive and frees.\n\n"
          "The address must be known to the context of `queue` (None: the current one), and\n"
          "device memory must belong to its device, else WrongContextError. All bytes must lie in\n"
          "one allocation, as far as the driver reports it, else OutOfRangeError. `kind` None:\n"
          "the kind that the driver reports. `device` without a queue: its default queue. On the\n"
          "host device any memory can be adopted with kind=\"host\". `owner` is released after\n"
          "the buffer, its views and exports were released and the work on them has completed. An\n"
          "owner that refers to its own buffer is never freed.")
      .def("disown", &disown, nb::sig("def disown(self) -> tuple[int, object]"),
           "Transfers the memory to another owner: returns (address, owner). `owner` is a capsule\n"
           "with an isthmus_owner_t: the memory is returned after the capsule was dropped and the\n"
           "work in flight has completed. This buffer is freed. Raises ValueError, and leaves the\n"
           "buffer unchanged, for 0 bytes and while slices, views or other buffers of the memory\n"
           "exist.");
  bind_repr(bound, "buffer");
  // ClosedError for a freed buffer.
  const auto enter = [](nb::handle self) { static_cast<void>(info_of(require_buffer(self))); };
  bind_scope<const Buffer>(bound, enter, &free_buffer);
}

}  // namespace

nb::class_<Buffer> bind_buffer(nb::module_& module) {
  nb::class_<Buffer> bound(
      module, "Buffer", nb::type_slots(buffer_slots), nb::is_weak_referenceable(), nb::pooled(),
      "One USM allocation: untyped bytes that a host and its devices share.\n\n"
      "Buffer(nbytes, *, kind=\"device\", device=None, queue=None, alignment=0, resource=None)\n\n"
      "`nbytes` may be 0. `kind`: \"device\" (device only), \"shared\" (migrates to where it is\n"
      "used) or \"host\" (host memory that devices can access). `device` (a Device or filter\n"
      "string) or `queue`: the location of the memory; neither: the current queue. `alignment` in\n"
      "bytes: a power of two; 0 or less: the device's default. `resource`: the resource to\n"
      "allocate from; None: the current one (isthmus.using), else the default pool. If a resource\n"
      "is passed, its kind is the default. The bytes have no defined values at first.\n\n"
      "Raises ValueError for a negative size or a bad alignment or kind, USMAllocationError (a\n"
      "MemoryError) if there is no memory, whatever the size, UnsupportedError for a kind that\n"
      "the device does not have.\n\n"
      "buf[100:200] is a view that keeps `buf` alive. memoryview(buf) and numpy.asarray(buf)\n"
      "access shared and host kinds without a copy, after the work pending on the buffer has\n"
      "completed, and device kind only on the host device (see isthmus.strict). Safe to use\n"
      "from any thread. Operations on one queue run in the order of their calls. An operation\n"
      "also waits for those on this buffer that were submitted to other queues before.");
  types.buffer = bound;
  bound.def(
      "__init__", &init_buffer, nb::arg("nbytes").none(), nb::kw_only(),
      nb::arg("kind") = nb::none(), nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(),
      nb::arg("alignment").none() = 0, nb::arg("resource") = nb::none(),
      nb::sig(
          "def __init__(self, nbytes: ByteCount, *, kind: str = 'device', device: Device | str | "
          "None = None, queue: Queue | None = None, alignment: int = 0, resource: "
          "MemoryResource | None = None) -> None"));
  bind_properties(bound);
  bind_methods(bound);
  return bound;
}

}  // namespace isthmus::python
