// SPDX-License-Identifier: Apache-2.0
// The copies of a unified buffer as arrays, and their bytes for exact access.

#include "array/array.hpp"
#include "buffer/buffer.hpp"
#include "unified/unified.hpp"

namespace isthmus::python {
namespace {

// Exports the host copy for as long as this object is referenced.
struct HostMemory {
  OwnedHandle<UnifiedHandle> raw;
  void* start;
  std::size_t nbytes;
  bool read_only = false;
};

int get_host_bytes(PyObject* self, Py_buffer* view, int flags) noexcept {
  const auto& memory = *nb::inst_ptr<HostMemory>(self);
  return PyBuffer_FillInfo(view, self, memory.start, static_cast<Py_ssize_t>(memory.nbytes),
                           memory.read_only ? 1 : 0, flags);
}

PyType_Slot host_memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_host_bytes)},
                                   {0, nullptr}};

nb::handle host_memory_type;

bool has_external_host_array(const Unified& self) noexcept {
  return Py_REFCNT(self.host_array.ptr()) > 1 ||
         Py_REFCNT(self.host_bytes.ptr()) > self.own_references;
}

}  // namespace

Unified& require_unified(nb::handle object) {
  auto* found = instance_of<Unified>(types.unified, object);
  if (found == nullptr) {
    raise_wrong_type(object, "expected a UnifiedBuffer");
  }
  return *found;
}

isthmus_unified_t* raw_of(Unified& self) noexcept {
  if (self.is_exported && !has_external_host_array(self)) {
    self.is_exported = false;
    const GilRelease released;  // the call frees the copies if the buffer was freed
    isthmus_unified_end_host(self.raw.get());
  }
  return self.raw.get();
}

namespace {

nb::object numpy_array(const Unified& self, nb::handle memory) {
  static PyObject* const ndarray_type =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return nb::handle(ndarray_type)(self.shape, self.dtype, memory);
}

void make_host_array(Unified& self, void* start) {
  self.host_bytes = make_instance<HostMemory>(
      host_memory_type, HostMemory{UnifiedHandle::share(self.raw.get()), start, self.nbytes});
  self.host_array = numpy_array(self, self.host_bytes);
  self.own_references = Py_REFCNT(self.host_bytes.ptr());
}

// Synchronizes the range and returns the host array.
nb::object host_of(Unified& self, std::size_t begin, std::size_t end) {
  auto* const raw = raw_of(self);
  if (self.is_exported) {
    nb::object array = self.host_array;  // another thread may drop the last other reference
    const void* start = nullptr;
    call_after_arrival(raw, nullptr, begin, end, ISTHMUS_ARRIVAL_FETCH,
                       [&] { return isthmus_unified_read_host(raw, begin, end - begin, &start); });
    return array;
  }
  void* start = nullptr;
  call_after_arrival(raw, nullptr, begin, end, ISTHMUS_ARRIVAL_FETCH,
                     [&] { return isthmus_unified_host(raw, begin, end - begin, &start); });
  if (self.is_exported) {  // another thread has exported it meanwhile
    nb::object array = self.host_array;
    const GilRelease released;
    isthmus_unified_end_host(raw);
    return array;
  }
  if (!self.host_array.is_valid()) {
    try {
      make_host_array(self, static_cast<std::byte*>(start) - begin);
    } catch (...) {
      const GilRelease released;
      isthmus_unified_end_host(raw);
      throw;
    }
  }
  self.is_exported = true;
  return self.host_array;
}

int get_array_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  const auto array = nb::steal(result_of([=] {
    auto& unified = require_unified(self);
    return host_of(unified, 0, unified.nbytes);
  }));
  return array.is_valid() ? PyObject_GetBuffer(array.ptr(), view, flags) : -1;
}

nb::object read_bytes(Unified& self, std::size_t begin, std::size_t end) {
  auto* const raw = raw_of(self);
  const void* start = nullptr;
  call_after_arrival(raw, nullptr, begin, end, ISTHMUS_ARRIVAL_FETCH,
                     [&] { return isthmus_unified_read_host(raw, begin, end - begin, &start); });
  return make_instance<HostMemory>(
      host_memory_type,
      HostMemory{UnifiedHandle::share(raw), const_cast<void*>(start), end - begin, true});
}

nb::object buffer_of_device(const Unified& self, BufferHandle raw, nb::handle queue) {
  const auto kind = self.one_memory ? ISTHMUS_KIND_HOST : ISTHMUS_KIND_DEVICE;
  nb::object queue_object = has_value(queue) ? nb::borrow(queue) : self.queue_object;
  return make_instance<Buffer>(types.buffer, std::move(raw), std::move(queue_object), nb::object{},
                               kind, self.nbytes, false);
}

bool device_array_is_numpy(const Unified& self) noexcept {
  return self.one_memory && nb::inst_ptr<python::Queue>(self.queue_object)->is_on_host;
}

// Throws TypeError, before anything is copied, for a dtype that only the host supports.
void ensure_layout(Unified& self) {
  if (!device_array_is_numpy(self) && !self.device_layout) {
    self.device_layout = dense_layout(to_shape(self.shape), to_element_type(self.dtype));
  }
}

// A Buffer over the whole device copy, synchronized in the range. Must be called before the device
// writes to the copy.
nb::object device_bytes(Unified& self, std::size_t begin, std::size_t end, nb::handle queue,
                        bool is_written) {
  ensure_layout(self);
  auto* const raw = raw_of(self);
  nb::object holder;
  auto* const queue_handle = raw_queue(queue, holder);
  BufferHandle buffer;
  call_interruptibly([&] {
    return is_written ? isthmus_unified_begin_device_write(raw, queue_handle, begin, end - begin,
                                                           buffer.out())
                      : isthmus_unified_device(raw, queue_handle, begin, end - begin, buffer.out());
  });
  return buffer_of_device(self, std::move(buffer), queue);
}

// An array over `memory`: a NumPy array on the host platform, where one memory is both copies.
nb::object typed_array_of(Unified& self, nb::object memory) {
  if (device_array_is_numpy(self)) {
    if (!self.typed_array.is_valid()) {
      self.typed_array = numpy_array(self, memory);
    }
    return self.typed_array;
  }
  return make_typed_array(std::move(memory), self.device_layout);
}

nb::object device_of_unified(nb::handle object) {
  auto& self = require_unified(object);
  if (!self.typed_array.is_valid()) {
    return typed_array_of(self, device_bytes(self, 0, self.nbytes, nb::none(), false));
  }
  auto* const raw = raw_of(self);
  BufferHandle buffer;
  call_interruptibly(
      [&] { return isthmus_unified_device(raw, nullptr, 0, self.nbytes, buffer.out()); });
  return self.typed_array;
}

// Bytes of the host copy, for a write of exactly this range.
nb::object begin_write(Unified& self, std::size_t begin, std::size_t end, bool keep_contents) {
  auto* const raw = raw_of(self);
  void* start = nullptr;
  call_after_arrival(
      raw, nullptr, begin, end, keep_contents ? ISTHMUS_ARRIVAL_FETCH : ISTHMUS_ARRIVAL_BEGUN, [&] {
        return isthmus_unified_begin_write(raw, begin, end - begin, keep_contents ? 1 : 0, &start);
      });
  return make_instance<HostMemory>(host_memory_type,
                                   HostMemory{UnifiedHandle::share(raw), start, end - begin});
}

void end_write(Unified& self, std::size_t begin, std::size_t end, bool keep_contents) {
  auto* const raw = raw_of(self);
  call_interruptibly(
      [&] { return isthmus_unified_end_write(raw, begin, end - begin, keep_contents ? 1 : 0); });
}

}  // namespace

PyType_Slot unified_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_array_view)},
                               {0, nullptr}};

void bind_unified_arrays(nb::module_& module, nb::class_<Unified>& bound) {
  host_memory_type =
      nb::class_<HostMemory>(module, "_HostMemory", nb::type_slots(host_memory_slots),
                             "Bytes of a unified buffer's host copy.")
          .release();
  bound
      .def(
          "_host",
          [](nb::handle self, std::size_t begin, std::size_t end) {
            return host_of(require_unified(self), begin, end);
          },
          nb::sig("def _host(self, begin: int, end: int) -> NDArray[Any]"))
      .def_prop_ro(
          "host",
          [](nb::handle self) {
            auto& unified = require_unified(self);
            return host_of(unified, 0, unified.nbytes);
          },
          nb::sig("def host(self) -> NDArray[Any]"),
          "The host copy as a NumPy array of `shape` and `dtype`, synchronized: waits for device\n"
          "writes. Later writes through it, and through arrays created from it, are detected.\n"
          "Raises ConflictError if both sides wrote the same bytes; ClosedError.")
      .def_prop_ro(
          "__array_interface__",
          [](const Unified&) -> nb::object {
            raise_saved_interrupt();
            raise_python(PyExc_AttributeError, "a UnifiedBuffer has no __array_interface__");
          },
          nb::sig("def __array_interface__(self) -> Any"),
          "Not supported. NumPy reads it after an interrupted wait for the host copy, whose\n"
          "exception it dropped; the exception is then raised again.")
      .def_prop_ro(
          "device", [](nb::handle self) { return device_of_unified(self); },
          nb::sig("def device(self) -> Any"),
          "The device copy, synchronized: an Array, or on the host platform, where one memory\n"
          "serves as both copies, a NumPy array. Returns when the host may write again, without\n"
          "waiting for kernels. Work submitted to the buffer's queue from then on is ordered\n"
          "after the upload. Raises ConflictError if both sides wrote the same bytes;\n"
          "USMAllocationError; ClosedError.")
      .def(
          "_device",
          [](nb::handle object, std::size_t begin, std::size_t end, nb::handle queue,
             bool is_written) {
            auto& self = require_unified(object);
            return typed_array_of(self, device_bytes(self, begin, end, queue, is_written));
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("queue").none(), nb::arg("is_written"),
          nb::sig("def _device(self, begin: int, end: int, queue: Queue | None, is_written: bool) "
                  "-> Any"))
      .def("_read", &read_bytes, nb::sig("def _read(self, begin: int, end: int) -> _HostMemory"))
      .def("_begin_write", &begin_write,
           nb::sig(
               "def _begin_write(self, begin: int, end: int, keep_contents: bool) -> _HostMemory"))
      .def("_end_write", &end_write,
           nb::sig("def _end_write(self, begin: int, end: int, keep_contents: bool) -> None"));
}

}  // namespace isthmus::python
