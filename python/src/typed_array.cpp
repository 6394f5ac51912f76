// Array: what it is, and its ways out.

#include "typed_array.hpp"

#include "arguments.hpp"

namespace isthmus::python {
namespace {

array_numbers to_strides(nb::handle given, const array_layout& of) {
  auto strides = to_shape(given);
  if (strides.size() != of.shape.size()) {
    raise_python(PyExc_ValueError, "%zu strides for %zu dimensions", strides.size(),
                 of.shape.size());
  }
  for (const auto each : strides) {
    if (each % of.item != 0) {
      raise_python(PyExc_ValueError,
                   "strides count bytes and must be multiples of an element's %lld, not %R",
                   static_cast<long long>(of.item), given.ptr());
    }
  }
  return strides;
}

shared_layout to_layout(nb::handle shape, nb::handle dtype, nb::handle strides) {
  const auto& type = to_element_type(dtype);
  auto extents = to_shape(shape);
  if (strides.is_none()) {
    return dense_layout(std::move(extents), type);
  }
  array_layout made{std::move(extents), {}, type.item, &type};
  made.strides = to_strides(strides, made);
  try {
    return std::make_shared<const typed_layout>(std::move(made));
  } catch (const too_far&) {
    raise_python(PyExc_OverflowError, "shape %R with strides %R reaches beyond 63 bits",
                 shape.ptr(), strides.ptr());
  }
}

// ClosedError for a freed buffer.
void require_inside(const typed_array& array) {
  const auto& layout = *array.layout;
  const auto& of = buffer_in(array);
  if (array.offset > of.nbytes || layout.extent > of.nbytes - array.offset) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "an array of shape %R and dtype %s takes %zu bytes, which from offset %zu lie "
                 "outside the buffer, which has %zu bytes",
                 to_tuple(layout.shape).ptr(), layout.type->name, layout.extent, array.offset,
                 of.nbytes);
  }
  const auto first = reinterpret_cast<std::uintptr_t>(info_of(of).pointer) + array.offset;
  if (layout.size != 0 && first % layout.type->alignment != 0) {
    raise_python(PyExc_ValueError,
                 "offset %zu puts elements at %p, which is no multiple of the %d bytes that %s is "
                 "aligned to",
                 array.offset, reinterpret_cast<void*>(first), layout.type->alignment,
                 layout.type->name);
  }
}

void init(typed_array* self, nb::handle buffer, nb::handle shape, nb::handle dtype,
          nb::handle strides, nb::handle offset) {
  static_cast<void>(require_buffer(buffer));
  typed_array made{nb::borrow(buffer), to_layout(shape, dtype, strides),
                    to_size(offset, "offset")};
  require_inside(made);
  new (self) typed_array{std::move(made)};
}

// -- the buffer protocol --------------------------------------------------------------------------

// What of `layout` the flags do not let through: nullptr if they take it.
const char* refusal(const array_layout& layout, bool is_c_dense, int flags) {
  const auto asks = [flags](int wanted) { return (flags & wanted) == wanted; };
  if (is_c_dense && !asks(PyBUF_F_CONTIGUOUS)) {
    return nullptr;
  }
  if (!asks(PyBUF_STRIDES) || asks(PyBUF_C_CONTIGUOUS)) {
    return "the array is not contiguous in C order: use to_numpy(), which copies";
  }
  if ((asks(PyBUF_F_CONTIGUOUS) && !is_dense(layout, element_order::fortran)) ||
      (asks(PyBUF_ANY_CONTIGUOUS) && !is_contiguous(layout))) {
    return "the array is not contiguous: use to_numpy(), which copies";
  }
  return nullptr;
}

static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
Py_ssize_t* numbers_of(const array_numbers& numbers) {
  return const_cast<Py_ssize_t*>(reinterpret_cast<const Py_ssize_t*>(numbers.data()));
}

const typed_array* ready_array(PyObject* self) noexcept {
  const auto* array = typed_array_of(self);
  if (array == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Array.__init__() was not called");
  }
  return array;
}

int get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return -1;
  }
  const auto& of = buffer_in(*array);
  const auto& layout = *array->layout;
  void* start = export_view(of, flags);
  if (start == nullptr) {
    return -1;
  }
  if (const char* why = refusal(layout, layout.is_c_dense, flags)) {
    isthmus_buffer_unexport(of.raw.get());
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
  }
  *view = Py_buffer{};
  view->buf = static_cast<char*>(start) + array->offset;
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(layout.nbytes);
  view->itemsize = layout.item;
  view->readonly = of.read_only ? 1 : 0;
  view->ndim = static_cast<int>(layout.shape.size());
  if ((flags & PyBUF_FORMAT) != 0) {
    view->format = const_cast<char*>(layout.type->format);
  }
  if ((flags & PyBUF_ND) != 0) {
    view->shape = numbers_of(layout.shape);
  }
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) {
    view->strides = numbers_of(layout.strides);
  }
  return 0;
}

void release_view(PyObject* self, Py_buffer*) noexcept {
  isthmus_buffer_unexport(buffer_in(*typed_array_of(self)).raw.get());
}

Py_ssize_t length_of(PyObject* self) noexcept {
  const auto* array = ready_array(self);
  if (array == nullptr) {
    return -1;
  }
  if (array->layout->shape.empty()) {
    PyErr_SetString(PyExc_TypeError, "an array of no dimensions has no length");
    return -1;
  }
  return array->layout->shape[0];
}

nb::object address_of(const typed_array& self) {
  return nb::steal(
      PyLong_FromVoidPtr(const_cast<void*>(view_of(self).in(info_of(buffer_in(self)).pointer))));
}

nb::object array_repr(const typed_array& self) {
  const auto& of = buffer_in(self);
  const auto& layout = *self.layout;
  const auto on = describe(*device_of(queue_of_buffer(of).device_object));
  const nb::object shape = to_tuple(layout.shape);
  nb::object gaps = nb::steal(
      layout.is_c_dense ? PyUnicode_FromString("")
                        : PyUnicode_FromFormat(", strides %R", to_tuple(layout.strides).ptr()));
  isthmus_buffer_info_t info{};
  info.struct_size = sizeof info;
  const bool is_freed = isthmus_buffer_info(of.raw.get(), &info) != ISTHMUS_OK;
  return nb::steal(PyUnicode_FromFormat("<isthmus.Array %U %R %s%U%s on %s%s>",
                                        kind_name(of.kind).ptr(), shape.ptr(), layout.type->name,
                                        gaps.ptr(), is_freed ? ", freed," : "", on.c_str(),
                                        of.read_only ? ", read-only" : ""));
}

nb::object moved_to_queue(const typed_array& self, nb::handle queue) {
  return make_typed_array(on_queue(self.buffer_object, queue), self.layout, self.offset);
}

nb::object lend_array(const typed_array& self, nb::handle stream, nb::handle max_version,
                      nb::handle device, nb::handle copy) {
  return to_dlpack(view_of(self), stream, max_version, device, copy);
}

nb::object host_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  return to_array(self, buffer_in(*typed_array_of(self)), dtype, copy);
}

void bind_layout(nb::class_<typed_array>& bound) {
  bound
      .def_prop_ro(
          "shape", [](const typed_array& self) { return to_tuple(self.layout->shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Elements along each dimension.")
      .def_prop_ro(
          "strides", [](const typed_array& self) { return to_tuple(self.layout->strides); },
          nb::sig("def strides(self) -> tuple[int, ...]"),
          "Bytes from one element to the next along each dimension.")
      .def_prop_ro(
          "dtype",
          [](const typed_array& self) { return nb::borrow(dtype_of(*self.layout->type)); },
          nb::sig("def dtype(self) -> Any"), "The elements' numpy.dtype. Imports NumPy.")
      .def_prop_ro(
          "ndim", [](const typed_array& self) { return self.layout->shape.size(); },
          "How many dimensions it has, 64 at most.")
      .def_prop_ro(
          "size", [](const typed_array& self) { return self.layout->size; }, "All its elements.")
      .def_prop_ro(
          "itemsize", [](const typed_array& self) { return self.layout->item; },
          "Bytes of an element.")
      .def_prop_ro(
          "nbytes", [](const typed_array& self) { return self.layout->nbytes; },
          "Bytes of all elements, without what lies between them.")
      .def_prop_ro(
          "offset", [](const typed_array& self) { return self.offset; },
          "Bytes from the buffer's start to the first element.")
      .def_prop_ro("ptr", &address_of, nb::sig("def ptr(self) -> int"),
                   "The first element's address. ClosedError if the buffer is freed.");
}

void bind_memory_of_array(nb::class_<typed_array>& bound) {
  bound
      .def_prop_ro(
          "buffer", [](const typed_array& self) { return self.buffer_object; },
          nb::sig("def buffer(self) -> Buffer"), "The memory, which it keeps alive.")
      .def_prop_ro(
          "kind", [](const typed_array& self) { return kind_name(buffer_in(self).kind); },
          nb::sig("def kind(self) -> str"), "\"device\", \"shared\" or \"host\".")
      .def_prop_ro(
          "queue", [](const typed_array& self) { return buffer_in(self).queue_object; },
          nb::sig("def queue(self) -> Queue"), "The buffer's queue.")
      .def_prop_ro(
          "device",
          [](const typed_array& self) { return queue_of_buffer(buffer_in(self)).device_object; },
          nb::sig("def device(self) -> Device"), "The device of its queue.")
      .def_prop_ro(
          "read_only", [](const typed_array& self) { return buffer_in(self).read_only; },
          "Whether writes to it are refused.")
      .def("on_queue", &moved_to_queue, nb::arg("queue").none(),
           nb::sig("def on_queue(self, queue: Queue) -> Array"),
           "The same elements, with operations that go to `queue`, of the same context\n"
           "(WrongContextError).")
      .def(
          "record",
          [](const typed_array& self, nb::handle user) { record_use(buffer_in(self), user); },
          nb::arg("queue_or_event").none(),
          nb::sig("def record(self, queue_or_event: Queue | Event) -> None"),
          "Tells that work which Isthmus does not know uses the memory: as Buffer.record.")
      .def("__repr__", &array_repr, nb::sig("def __repr__(self) -> str"));
}

void bind_interfaces(nb::class_<typed_array>& bound) {
  bound
      .def_prop_ro(
          "__sycl_usm_array_interface__",
          [](const typed_array& self) { return usm_interface(view_of(self)); },
          nb::sig("def __sycl_usm_array_interface__(self) -> dict[str, Any]"),
          "Version 1, as Buffer's, of the first element's address; strides count elements.")
      .def_prop_ro(
          "__array_interface__",
          [](nb::handle self) { return array_interface(self, view_of(*typed_array_of(self))); },
          nb::sig("def __array_interface__(self) -> dict[str, Any]"),
          "NumPy's interface, version 3, of shared and host kinds, as Buffer's.")
      .def_prop_ro(
          "__cuda_array_interface__",
          [](const typed_array& self) { return cuda_interface(view_of(self)); },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
          "Numba's interface, version 3, of arrays on CUDA devices, as Buffer's.")
      .def("__array__", &host_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any"),
           "An array over the memory of shared and host kinds. Raises TypeError for device kind.")
      .def("__dlpack__", &lend_array, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig(
               "def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | "
               "None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) "
               "-> Any"),
           "A DLPack capsule of its type, shape and strides, with Buffer.__dlpack__'s arguments,\n"
           "waits and errors. A copy has no gaps.")
      .def(
          "__dlpack_device__",
          [](const typed_array& self) { return dlpack_device(buffer_in(self)); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
          "As Buffer.__dlpack_device__.");
}

PyType_Slot typed_array_slots[] = {{Py_mp_length, reinterpret_cast<void*>(&length_of)},
                                    {Py_mp_subscript, reinterpret_cast<void*>(&array_subscript)},
                                    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_view)},
                                    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_view)},
                                    {0, nullptr}};

}  // namespace

nb::object make_typed_array(nb::object buffer, shared_layout layout, std::size_t offset) {
  return make_instance<typed_array>(types.typed_array,
                                     typed_array{std::move(buffer), std::move(layout), offset});
}

void bind_typed_array(nb::module_& module) {
  nb::class_<typed_array> bound(
      module, "Array", nb::type_slots(typed_array_slots), nb::is_weak_referenceable(),
      nb::pooled(),
      "A typed N-dimensional array over a Buffer of any kind.\n\n"
      "Array(buffer, shape, dtype=\"float32\", *, strides=None, offset=0)\n\n"
      "`shape`: an integer or a sequence of them. `dtype`: what NumPy takes for a bool, integer,\n"
      "float or complex type in this machine's order of bytes. `strides` in bytes, 0 or more and\n"
      "multiples of the element's size; None: C order without gaps. `offset`: bytes from the\n"
      "buffer's start to the first element. Copies nothing and keeps the buffer alive; nothing\n"
      "works on it any more once that is freed (ClosedError).\n\n"
      "Raises OutOfRangeError where an element lies outside the buffer, TypeError for other "
      "types,\n"
      "ValueError for negative numbers, strides that fit neither shape nor type and elements that\n"
      "are not aligned, OverflowError past 63 bits.\n\n"
      "array[2], array[1:3, ::2] and array[..., 0] are views. memoryview(array) and\n"
      "numpy.asarray(array) see shared and host kinds without a copy, once pending work on the\n"
      "buffer has ended; other libraries take it by DLPack and the interfaces. Never changes, and\n"
      "is safe to use from any thread; operations on the elements are the buffer's.");
  types.typed_array = bound;
  bound.def(
      "__init__", &init, nb::arg("buffer").none(), nb::arg("shape").none(),
      nb::arg("dtype").none() = "float32", nb::kw_only(), nb::arg("strides") = nb::none(),
      nb::arg("offset").none() = 0,
      nb::sig("def __init__(self, buffer: Buffer, shape: int | Sequence[int], dtype: Any = "
              "'float32', *, strides: Sequence[int] | None = None, offset: int = 0) -> None"));
  bind_layout(bound);
  bind_memory_of_array(bound);
  bind_interfaces(bound);
  bind_array_views(bound);
  bind_array_copies(bound);
}

}  // namespace isthmus::python
