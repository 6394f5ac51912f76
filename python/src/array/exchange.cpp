// SPDX-License-Identifier: Apache-2.0
// Exports of Array: the buffer protocol, the interfaces, DLPack.

#include "interop/exchange.hpp"
#include "array/array.hpp"
#include "array/bindings.hpp"
#include "core/arguments.hpp"

namespace isthmus::python {
namespace {

// The reason that the flags do not allow this layout; nullptr if they do.
const char* refusal_reason(const ArrayLayout& layout, bool is_c_dense, int flags) {
  const auto requests = [flags](int requested_flags) {
    return (flags & requested_flags) == requested_flags;
  };
  if (layout.is_empty() || (is_c_dense && !requests(PyBUF_F_CONTIGUOUS))) {
    return nullptr;
  }
  if (!requests(PyBUF_STRIDES) || requests(PyBUF_C_CONTIGUOUS)) {
    return "the array is not contiguous in C order: use to_numpy(), which copies";
  }
  const bool is_fortran_dense = layout.is_column_major(layout.item);
  if ((requests(PyBUF_F_CONTIGUOUS) && !is_fortran_dense) ||
      (requests(PyBUF_ANY_CONTIGUOUS) && !is_fortran_dense && !is_c_dense)) {
    return "the array is not contiguous: use to_numpy(), which copies";
  }
  return nullptr;
}

int check_request(const TypedArray& array, int flags) noexcept {
  if (array.is_locked && (flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(error_type(ISTHMUS_ERROR_READ_ONLY), "this array is read-only");
    return -1;
  }
  if (array.layout->type->format == nullptr && (flags & PyBUF_FORMAT) != 0) {
    PyErr_Format(PyExc_BufferError,
                 "the buffer protocol has no name for %s: use DLPack, or view() with another type",
                 array.layout->type->name);
    return -1;
  }
  return 0;
}

static_assert(sizeof(Py_ssize_t) == sizeof(std::int64_t));
Py_ssize_t* numbers_of(const ArrayNumbers& numbers) {
  return const_cast<Py_ssize_t*>(reinterpret_cast<const Py_ssize_t*>(numbers.data()));
}

nb::object export_array(const TypedArray& self, nb::handle stream, nb::handle max_version,
                        nb::handle device, nb::handle copy) {
  return to_dlpack(view_of(self), stream, max_version, device, copy);
}

nb::object host_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const auto& array = require_array(self, "x");
  if (array.layout->type->dtype != ISTHMUS_BFLOAT16) {
    return to_array(self, buffer_in(array), dtype, copy);
  }
  if (!copy.is_none() && !to_flag(copy, "copy")) {  // the buffer protocol has no such elements
    raise_python(PyExc_ValueError,
                 "converting an array of bfloat16 to NumPy needs a copy: pass copy=None");
  }
  const nb::object numpy_copy = self.attr("to_numpy")();  // throws TypeError, with advice
  return dtype.is_none() ? numpy_copy : numpy_copy.attr("astype")(dtype);
}

}  // namespace

int array_get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  const auto* array = ready_array(self);
  if (array == nullptr || check_request(*array, flags) != 0) {
    return -1;
  }
  // Held, since another thread may free the array meanwhile.
  const nb::object held = nb::steal(result_of([=] { return array->memory.object(); }));
  if (!held.is_valid()) {
    return -1;
  }
  const auto& buffer = buffer_in(*array);
  const auto& layout = *array->layout;
  void* data = export_view(buffer, flags);
  if (data == nullptr) {
    return -1;
  }
  if (const char* reason = refusal_reason(layout, layout.is_c_dense, flags)) {
    end_export(buffer);
    PyErr_SetString(PyExc_BufferError, reason);
    return -1;
  }
  *view = Py_buffer{};
  view->buf = static_cast<char*>(data) + array->offset;
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(layout.nbytes);
  view->itemsize = layout.item;
  view->readonly = is_read_only(*array) ? 1 : 0;
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
  view->internal = BufferHandle::share(buffer.raw.get()).detach();
  return 0;
}

void array_release_view(PyObject*, Py_buffer* view) noexcept {
  auto* const exported = static_cast<isthmus_buffer_t*>(view->internal);
  const GilRelease released{isthmus_buffer_free_may_wait(exported) != 0};
  isthmus_buffer_unexport(exported);
  isthmus_buffer_release(exported);
}

void bind_array_exchange(nb::class_<TypedArray>& bound) {
  bound
      .def_prop_ro(
          "__sycl_usm_array_interface__",
          [](const TypedArray& self) { return usm_interface(view_of(self)); },
          nb::sig("def __sycl_usm_array_interface__(self) -> dict[str, Any]"),
          "Version 1, like Buffer's, with the address of the first element. Strides are counted\n"
          "in elements and may be negative.")
      .def_prop_ro(
          "__array_interface__",
          [](nb::handle self) { return array_interface(self, view_of(require_array(self, "x"))); },
          nb::sig("def __array_interface__(self) -> dict[str, Any]"),
          "NumPy's interface, version 3, for shared and host kinds, like Buffer's.")
      .def_prop_ro(
          "__cuda_array_interface__",
          [](const TypedArray& self) { return cuda_interface(view_of(self)); },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"),
          "Numba's interface, version 3, for arrays on CUDA devices, like Buffer's.")
      .def("__array__", &host_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any"),
           "An array over the memory of shared and host kinds, and of device kind on the host\n"
           "device (see isthmus.strict). Raises TypeError for device kind elsewhere.")
      .def("__dlpack__", &export_array, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none(),
           nb::sig(
               "def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | "
               "None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) "
               "-> Any"),
           "A DLPack capsule of its type, shape and strides, with the arguments, waits and errors\n"
           "of Buffer.__dlpack__. A copy has no gaps. Only a capsule with a version can have\n"
           "negative strides. Without one, or if the caller is a function of PyTorch, which ends\n"
           "the process for such strides, they raise BufferError: export a copy().")
      .def(
          "__dlpack_device__",
          [](const TypedArray& self) { return dlpack_device(buffer_in(self)); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
          "Like Buffer.__dlpack_device__.");
}

}  // namespace isthmus::python
