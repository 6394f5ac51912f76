// SPDX-License-Identifier: Apache-2.0
// Exports of Buffer: interface dictionaries, bytes, NumPy, pickle.

#include "interop/exchange.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "buffer/array_view.hpp"
#include "core/arguments.hpp"
#include "core/cuda_streams.hpp"
#include "core/interned.hpp"
#include "core/interruptible.hpp"
#include "core/interrupts.hpp"
#include "interop/bindings.hpp"
#include "interop/dlpack.hpp"
#include "layout/dtype.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

// -- dictionaries ---------------------------------------------------------------------------------

enum class Protocol { usm, numpy, cuda };

// Copying a dictionary that has all its keys is the fastest way to create one.
PyObject* make_template(Protocol protocol) {
  nb::dict dictionary;
  dictionary["data"] = nb::none();
  dictionary["shape"] = nb::none();
  dictionary["strides"] = nb::none();
  dictionary["typestr"] = "|u1";
  dictionary["version"] = protocol == Protocol::usm ? 1 : 3;
  if (protocol == Protocol::usm) {
    dictionary["syclobj"] = nb::none();
  }
  return dictionary.release().ptr();
}

PyObject* usm_template() {
  static PyObject* const dictionary = make_template(Protocol::usm);
  return dictionary;
}

void set_entry(nb::handle dictionary, PyObject* key, nb::object value) {
  if (!value.is_valid() || PyDict_SetItem(dictionary.ptr(), key, value.ptr()) != 0) {
    raise_set();
  }
}

nb::object filled(PyObject* source, const void* pointer, bool flag, NumberSpan shape) {
  nb::object dictionary = steal_or_raise(PyDict_Copy(source));
  nb::object address = nb::steal(PyLong_FromVoidPtr(const_cast<void*>(pointer)));
  set_entry(dictionary, interned.data,
            nb::steal(PyTuple_Pack(2, address.ptr(), flag ? Py_True : Py_False)));
  set_entry(dictionary, interned.shape, to_tuple(shape));
  return dictionary;
}

// `by_items`: strides are counted in elements.
nb::object filled(PyObject* source, const void* pointer, const ArrayView& view, bool by_items) {
  nb::object dictionary = filled(source, pointer, view.read_only, view.shape);
  if (!view.is_c_dense) {
    dictionary[nb::str("strides")] = to_tuple(
        by_items ? strides_in_items(view.strides, view.type.item) : ArrayNumbers(view.strides));
  }
  if (&view.type != &byte_type()) {
    dictionary[nb::str("typestr")] = typestr_of(view.type);
  }
  return dictionary;
}

// A consumer that waits for the queue's stream thereby waits for work of other queues on the
// buffer.
void order_after_pending(const Buffer& buffer, const Queue& queue) {
  void* pointer = nullptr;
  call_interruptibly([&] {
    const auto status = isthmus_buffer_export_to_queue(buffer.raw.get(), queue.raw.get(), &pointer);
    if (status == ISTHMUS_OK) {
      isthmus_buffer_unexport(buffer.raw.get());
    }
    return status;
  });
}

// -- fresh host memory ----------------------------------------------------------------------------

// Host memory of the library for results. Large blocks are reused, so their pages are usually
// faulted in already.
struct HostResult {
  explicit HostResult(std::size_t size) : nbytes{size} {
    check(isthmus_result_allocate(size, &pointer));
  }
  ~HostResult() { isthmus_result_free(pointer); }
  HostResult(const HostResult&) = delete;
  HostResult& operator=(const HostResult&) = delete;
  void* pointer = nullptr;
  std::size_t nbytes;
};
nb::handle host_result_type;

int view_result(PyObject* self, Py_buffer* view, int flags) noexcept {
  auto* result = nb::inst_ptr<HostResult>(self);
  return PyBuffer_FillInfo(view, self, result->pointer, static_cast<Py_ssize_t>(result->nbytes), 0,
                           flags);
}
PyType_Slot host_result_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&view_result)},
                                   {0, nullptr}};

// Below this size memory from malloc is already faulted in.
constexpr std::size_t k_result_bytes = 64 * 1024;

nb::object host_copy(const ArrayView& view) {
  nb::object object =
      make_instance<HostResult>(host_result_type, std::max<std::size_t>(view.nbytes, 1));
  auto* result = nb::inst_ptr<HostResult>(object);
  result->nbytes = view.nbytes;
  copy_out(view, result->pointer, object);
  return object;
}

// The first touch of small pages takes several times as long as a copy. NumPy requests huge pages
// for its arrays in the same way.
void advise_huge_pages(char* start, std::size_t nbytes) {
  constexpr std::size_t k_min_huge_bytes = std::size_t{4} << 20;
  constexpr std::uintptr_t k_page = 4096;
  if (nbytes >= k_min_huge_bytes) {
    const auto skip = -reinterpret_cast<std::uintptr_t>(start) % k_page;
    madvise(start + skip, nbytes - skip, MADV_HUGEPAGE);
  }
}

PyObject* numpy_attribute(const char* name) {
  return nb::object(nb::module_::import_("numpy").attr(name)).release().ptr();
}

nb::object small_array(const ArrayView& array_view) {
  static PyObject* const empty = numpy_attribute("empty");
  nb::object array =
      nb::handle(empty)(to_tuple(array_view.shape), require_numpy_dtype(array_view.type));
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE) != 0) {
    raise_set();
  }
  void* destination = view.buf;
  PyBuffer_Release(&view);  // no other code refers to the array
  copy_out(array_view, destination, array);
  return array;
}

// -- pickle ---------------------------------------------------------------------------------------

nb::object reduce(nb::handle self, int protocol) {
  static PyObject* reducer = nullptr;
  if (reducer == nullptr) {
    reducer = nb::object(nb::module_::import_("isthmus._pickle").attr("reduce")).release().ptr();
  }
  return nb::handle(reducer)(self, protocol);
}

nb::object host_copy_of(nb::handle self) { return host_copy(ByteView{self}.get()); }
nb::object clone(nb::handle self) {
  const ByteView bytes{self};
  const auto view = bytes.get();
  return copy_to_buffer(view, view_type(view.buffer, self), info_of(view.buffer).alignment,
                        PoolUse::buffers);
}

}  // namespace

const Queue& queue_to_export(const Buffer& buffer) {
  const auto& queue = queue_of_buffer(buffer);
  if (buffer.kind == ISTHMUS_KIND_DEVICE && buffer.nbytes != 0) {
    const auto info =
        read_info<isthmus_pointer_info_t>(isthmus_pointer_info, nullptr, info_of(buffer).pointer);
    if (info.device != nullptr && device_key_of(info.device) != queue.device_key) {
      const auto owner = Device(DeviceHandle::share(info.device));
      raise_python(PyExc_BufferError,
                   "memory of %s whose buffer is on a queue of %s cannot be exported: use "
                   "on_queue(queue) with a queue of its own device",
                   describe(owner).c_str(), describe(*device_of(queue.device_object)).c_str());
    }
  }
  return queue;
}

nb::object usm_bytes_interface(const void* pointer, std::size_t nbytes, bool flag,
                               nb::handle syclobj) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(nbytes)};
  nb::object dictionary = filled(usm_template(), pointer, flag, shape);
  set_entry(dictionary, interned.syclobj, nb::borrow(syclobj));
  return dictionary;
}

nb::object usm_interface(const ArrayView& view) {
  const auto& queue = queue_to_export(view.buffer);
  nb::object dictionary =
      filled(usm_template(), view.address_in(info_of(view.buffer).pointer), view, true);
  set_entry(dictionary, interned.syclobj, view.buffer.queue_object);
  if (isthmus_buffer_idle(view.buffer.raw.get()) == 0) {
    order_after_pending(view.buffer, queue);  // most SYCL queues are out of order
  }
  return dictionary;
}

nb::object array_interface(nb::handle self, const ArrayView& array_view) {
  static PyObject* const template_dict = make_template(Protocol::numpy);
  if (!host_may_access(array_view.buffer)) {
    raise_python(PyExc_AttributeError,
                 "__array_interface__: memory of kind 'device' cannot be accessed by the host");
  }
  static_cast<void>(typestr_of(array_view.type));  // AttributeError
  static_cast<void>(info_of(array_view.buffer));
  raise_saved_interrupt();
  // Creating a view waits for pending work.
  nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
  if (!view.is_valid()) {
    clear_interrupt();  // of this call, whose exception no caller clears
    raise_set();
  }
  return filled(template_dict, PyMemoryView_GET_BUFFER(view.ptr())->buf, array_view, false);
}

nb::object cuda_interface(const ArrayView& view) {
  static PyObject* const template_dict = make_template(Protocol::cuda);
  const auto& queue = queue_to_export(view.buffer);
  if (cuda_number_of(queue) < 0) {
    raise_python(PyExc_AttributeError, "__cuda_array_interface__: %s is not a CUDA device",
                 describe(*device_of(queue.device_object)).c_str());
  }
  const void* const first = view.address_in(info_of(view.buffer).pointer);
  nb::object dictionary = filled(template_dict, view.nbytes == 0 ? nullptr : first, view, false);
  dictionary[nb::str("stream")] = export_stream(queue);
  order_after_pending(view.buffer, queue);
  return dictionary;
}

// NumPy calls this if the buffer protocol failed, other libraries even if it is available.
nb::object to_array(nb::handle self, const Buffer& buffer, nb::handle dtype, nb::handle copy) {
  static_cast<void>(info_of(buffer));
  if (!host_may_access(buffer)) {
    raise_python(
        PyExc_TypeError,
        "memory of kind 'device' cannot be accessed by the host: use to_numpy(), which "
        "copies, or a library for the device, as in cupy.asarray(x), torch.from_dlpack(x)");
  }
  nb::object array = nb::module_::import_("numpy").attr("asarray")(self);
  if (!dtype.is_none()) {
    const bool forbids = !copy.is_none() && !is_true(copy);
    if (forbids && !array.attr("dtype").equal(dtype)) {
      raise_python(PyExc_ValueError,
                   "conversion to another dtype, %R, needs a copy: pass copy=None to allow it",
                   dtype.ptr());
    }
    array = array.attr("astype")(dtype, nb::arg("copy").none() = false);
  }
  return !copy.is_none() && is_true(copy) ? array.attr("copy")() : array;
}

nb::object to_bytes(nb::handle self) {
  const auto& buffer = require_buffer(self);
  const auto bytes = make_bytes(buffer.nbytes);
  advise_huge_pages(PyBytes_AS_STRING(bytes.ptr()), buffer.nbytes);
  copy_out(ByteView{self}.get(), PyBytes_AS_STRING(bytes.ptr()), bytes);
  return bytes;
}

nb::object to_numpy(const ArrayView& view) {
  if (view.nbytes < k_result_bytes) {
    return small_array(view);
  }
  static PyObject* const ndarray = numpy_attribute("ndarray");
  return nb::handle(ndarray)(to_tuple(view.shape), require_numpy_dtype(view.type), host_copy(view));
}

nb::object to_numpy(nb::handle self) { return to_numpy(ByteView{self}.get()); }

namespace {

nb::object bytes_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  return to_array(self, require_buffer(self), dtype, copy);
}
nb::object export_bytes(nb::handle self, nb::handle stream, nb::handle max_version,
                        nb::handle device, nb::handle copy) {
  return to_dlpack(ByteView{self}.get(), stream, max_version, device, copy);
}

void bind_protocols(nb::class_<Buffer>& bound) {
  bound
      .def_prop_ro(
          "__sycl_usm_array_interface__",
          [](nb::handle self) { return usm_interface(ByteView{self}.get()); },
          nb::sig("def __sycl_usm_array_interface__(self) -> dict[str, Any]"),
          "Version 1: bytes (\"|u1\") in C order; syclobj is the queue; the flag beside the\n"
          "address is True for read-only memory. Waits only for work that itself waits for the\n"
          "host. Work submitted to the queue from then on is ordered after all pending work,\n"
          "except external work on that queue. ClosedError if freed, or if there is pending work\n"
          "and the queue is closed.")
      .def_prop_ro(
          "__array_interface__",
          [](nb::handle self) { return array_interface(self, ByteView{self}.get()); },
          nb::sig("def __array_interface__(self) -> dict[str, Any]"),
          "NumPy's interface, version 3, for shared and host kinds; waits for pending work.\n"
          "Buffers of device kind have it only on the host device (see isthmus.strict).")
      .def_prop_ro(
          "__cuda_array_interface__",
          [](nb::handle self) { return cuda_interface(ByteView{self}.get()); },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
          "Numba's interface, version 3, for buffers on CUDA devices. `stream` is the queue's\n"
          "stream, which is ordered after all pending work and whose handle counts as exported\n"
          "from then on. Waits only for work that itself waits for the host. A consumer that uses\n"
          "the memory on another stream must call record(Queue.from_stream(stream)). ClosedError\n"
          "if freed; buffers on other devices have no such attribute.")
      .def("__array__", &bytes_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any"),
           "A uint8 array over the bytes of shared and host kinds, and of device kind on the host\n"
           "device (see isthmus.strict). Raises TypeError for device kind elsewhere.")
      .def(
          "__dlpack__", &export_bytes, nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
          nb::arg("copy") = nb::none(),
          nb::sig(
              "def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = "
              "None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any"),
          "A DLPack capsule of uint8, versioned if `max_version` is (1, 0) or more. The memory\n"
          "stays valid, even after free(), until the consumer releases it.\n\n"
          "On the CPU, (1, 0), for shared and host kinds, and for device kind of the host device\n"
          "(see isthmus.strict): waits for pending work. On a CUDA device, without waiting: (2, "
          "n)\n"
          "for device kind, and if `dl_device` requests it for shared kind, which can also be\n"
          "(13, n); (3, n) for host kind. `stream`, as the array API defines it (None or 1: the\n"
          "legacy default stream, -1: no order), is ordered after pending work. Work on the "
          "stream\n"
          "counts as work on this buffer until the consumer has released the memory and that work\n"
          "has completed. In the default context of SYCL devices, if dpctl is imported, (14, n),\n"
          "kDLOneAPI, for device kind, and for all kinds on request: `stream` is a "
          "dpctl.SyclQueue\n"
          "or a Queue, and None waits for pending work.\n\n"
          "`copy` True: a copy. None: a copy for the CPU if that cannot access the memory and\n"
          "`dl_device` is (1, 0). Raises BufferError for devices that cannot use the memory,\n"
          "for a stream on a device without streams, and for read-only memory without a version.")
      .def("__dlpack_device__", &dlpack_device,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
           "(1, 0), kDLCPU, for shared and host kinds, and for device kind of the host device\n"
           "outside of strict mode; (2, n), kDLCUDA, for device kind on CUDA devices; (14, n),\n"
           "kDLOneAPI, for device kind in the default contexts of SYCL, if dpctl is imported.\n"
           "Raises BufferError for device kind elsewhere.")
      .def_static(
          "from_dlpack", &from_dlpack, nb::arg("obj").none(), nb::kw_only(),
          nb::arg("queue") = nb::none(),
          nb::sig("def from_dlpack(obj: Any, *, queue: Queue | None = None) -> Buffer"),
          "A buffer over the memory of a contiguous array that has __dlpack__, or of a capsule,\n"
          "without a copy. The memory is kept alive. CPU memory is of kind \"host\", on\n"
          "`queue`, None: the host device's. CUDA and SYCL memory is of the kind that the\n"
          "driver reports; the producer orders `queue` (None: the current one if it is on that\n"
          "device, else the device's default one) after its work. Raises BufferError for other\n"
          "devices and types, ValueError for an array that is not contiguous.");
}

void bind_copies(nb::class_<Buffer>& bound) {
  bound
      .def("tobytes", &to_bytes, nb::sig("def tobytes(self) -> bytes"),
           "A copy of all bytes. Waits for pending work on the buffer.")
      .def("__bytes__", &to_bytes, nb::sig("def __bytes__(self) -> bytes"))
      .def("to_numpy", nb::overload_cast<nb::handle>(&to_numpy),
           nb::sig("def to_numpy(self) -> Any"),
           "A new uint8 ndarray with a copy of all bytes, of any kind. Waits for pending work.")
      .def("_host_copy", &host_copy_of, nb::sig("def _host_copy(self) -> Any"),
           "A copy of all bytes, as an object with the buffer protocol.")
      .def("__copy__", &clone, nb::sig("def __copy__(self) -> Self"),
           "Allocates memory of the same kind, alignment and queue, and copies the bytes.")
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return clone(self); },
          nb::arg("memo").none(), nb::sig("def __deepcopy__(self, memo: Any) -> Self"))
      .def("__reduce_ex__", &reduce, nb::arg("protocol"),
           nb::sig("def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]"),
           "Pickles contents, kind, alignment and the device's filter. From protocol 5 on the\n"
           "contents are passed out of band if the pickler supports that.");
}

}  // namespace

void bind_buffer_exchange(nb::module_& module, nb::class_<Buffer>& bound) {
  host_result_type = nb::class_<HostResult>(
      module, "_HostResult", nb::type_slots(host_result_slots), "Host memory that holds a result.");
  bind_protocols(bound);
  bind_copies(bound);
}

}  // namespace isthmus::python
