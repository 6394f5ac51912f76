// SPDX-License-Identifier: Apache-2.0
// Python objects as endpoints of a copy.

#include <algorithm>
#include <memory>

#include "read_only.hpp"
#include "transfers.hpp"
#include "typed_array.hpp"

namespace isthmus::python {
namespace {

constexpr const char* k_not_contiguous =
    "%s is not contiguous: pass numpy.ascontiguousarray(...) of it, or copy it with "
    "copy_nd";

bool holds_references(const Py_buffer& view) {
  for (const char* at = view.format; at != nullptr && *at != '\0'; ++at) {
    if (*at == 'O') {
      return true;
    }
  }
  return false;
}

// Checks what an exporter filled in, by PyBUF_STRIDES, before anything is computed from it.
void require_sound(const Py_buffer& view) {
  const bool lacks = view.ndim > 0 && (view.shape == nullptr || view.strides == nullptr);
  if (view.ndim < 0 || view.ndim > PyBUF_MAX_NDIM || lacks || view.itemsize < 0 || view.len < 0) {
    raise_python(PyExc_BufferError,
                 "invalid buffer: %d dimensions, %zd bytes and items of %zd bytes%s", view.ndim,
                 view.len, view.itemsize, lacks ? ", without shape or strides" : "");
  }
  Py_ssize_t nbytes = view.itemsize;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] < 0 || __builtin_mul_overflow(nbytes, view.shape[i], &nbytes)) {
      raise_python(PyExc_BufferError, "invalid buffer: an extent of %zd", view.shape[i]);
    }
  }
  if (nbytes != view.len || (nbytes != 0 && view.buf == nullptr)) {
    raise_python(PyExc_BufferError, "invalid buffer: %zd bytes at %p, but the elements take %zd",
                 view.len, view.buf, nbytes);
  }
}

// Checks that all elements have an address.
void require_addresses(const Py_buffer& view, const ArrayLayout& layout) {
  if (is_empty(layout)) {
    return;
  }
  try {
    const auto box = box_of(layout);
    const auto first = reinterpret_cast<std::uintptr_t>(view.buf);
    std::uintptr_t low = 0, end = 0;
    if (!__builtin_add_overflow(first, box.start, &low) &&
        !__builtin_add_overflow(low, box.nbytes, &end)) {
      return;
    }
  } catch (const TooFar&) {
    // refused with the others
  }
  raise_python(PyExc_BufferError, "invalid buffer: its strides exceed the address space, 2**64");
}

void refuse_references(const Py_buffer& view, const char* role) {
  if (holds_references(view)) {
    raise_python(PyExc_TypeError,
                 "%s holds references to Python objects, which cannot be copied as bytes: convert "
                 "it to a numeric dtype",
                 role);
  }
}

[[noreturn]] void raise_read_only(nb::handle object, const char* role) {
  raise_python(error_type(ISTHMUS_ERROR_READ_ONLY), "%s of type %.100s is read-only", role,
               Py_TYPE(object.ptr())->tp_name);
}

// Why there is no view: read-only, not contiguous, or the object's own error.
[[noreturn]] void explain_refusal(nb::handle object, Access wanted, const char* role) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Pinned probe;
  if (PyObject_GetBuffer(object.ptr(), &probe.view, PyBUF_FULL_RO) == 0) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (wanted == Access::write && probe.view.readonly != 0) {
      raise_read_only(object, role);
    }
    raise_python(PyExc_ValueError, k_not_contiguous, role);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  raise_set();
}

// The first that works of: contiguous in C order, in Fortran order, or of a type without a format
// (dates).
bool take_view(nb::handle object, int extra, Py_buffer& view) {
  for (const int flags :
       {PyBUF_ND | PyBUF_FORMAT, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT, PyBUF_SIMPLE}) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object.ptr(), &view, flags | extra) == 0) {
      return true;
    }
  }
  return false;
}

Place dense_foreign_place(nb::handle object, const ToldInterface& told, Access wanted,
                          const char* role) {
  if (!told.contiguous) {
    raise_python(PyExc_ValueError, k_not_contiguous, role);
  }
  return foreign_place(object, told, wanted, role);
}

Place host_place(nb::handle object, Access wanted, const char* role) {
  Place made;
  made.memory = std::make_unique<Pinned>();
  auto& view = made.memory->view;
  if (!take_view(object, wanted == Access::write ? PyBUF_WRITABLE : 0, view)) {
    nb::python_error refused;  // CuPy's arrays have the buffer protocol and refuse it
    if (const auto told = read_interface(object, wanted)) {
      return dense_foreign_place(object, *told, wanted, role);
    }
    refused.restore();
    explain_refusal(object, wanted, role);
  }
  refuse_references(view, role);
  if (view.len < 0 || (view.len > 0 && view.buf == nullptr)) {
    raise_python(PyExc_BufferError, "invalid buffer: %zd bytes at %p", view.len, view.buf);
  }
  if (wanted == Access::write && is_locked_elsewhere(object)) {
    raise_read_only(object, role);
  }
  made.raw.pointer = view.buf;
  made.nbytes = static_cast<std::size_t>(view.len);
  return made;
}

void require_forward(const ArrayLayout& layout, const char* role) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.strides[i] < 0 && layout.shape[i] > 1) {
      raise_python(PyExc_ValueError,
                   "dimension %zu of the %s has a negative stride of %lld bytes: pass "
                   "numpy.ascontiguousarray(...) of it",
                   i, role, static_cast<long long>(layout.strides[i]));
    }
  }
}

// Those of extents that are never stepped through. Pre: require_forward.
void drop_backward_strides(ArrayLayout& layout) {
  for (auto& each : layout.strides) {
    each = std::max<std::int64_t>(each, 0);
  }
}

// The part of its buffer that its elements occupy. Pre: no element lies before the first.
Place part_place(nb::handle object, const TypedArray& array, Access wanted, const char* role) {
  if (wanted == Access::write && array.is_locked) {
    raise_read_only(object, role);
  }
  const auto& parent = buffer_in(array);
  Place made = buffer_place(parent);
  check(isthmus_buffer_slice(parent.raw.get(), array.offset, array.layout->extent,
                             made.adopted.out()));
  made.raw.buffer = made.adopted.get();
  made.nbytes = array.layout->extent;
  made.keep = array.memory.object();
  return made;
}

}  // namespace

Place foreign_place(nb::handle object, const ToldInterface& told, Access wanted, const char* role) {
  if (wanted == Access::write && told.what.read_only) {
    raise_read_only(object, role);
  }
  Place made;
  const auto* on = queue_of(told.queue);
  if (told.empty && told.what.pointer == nullptr) {
    static char nowhere = 0;
    made.raw.pointer = &nowhere;
    return made;
  }
  check(isthmus_buffer_adopt(told.what.pointer, told.what.nbytes, told.what.kind,
                             told.what.read_only ? 1 : 0, on->raw.get(), keep_alive(object),
                             made.adopted.out()));
  made.raw.buffer = made.adopted.get();
  made.nbytes = told.empty ? 0 : told.what.nbytes;
  made.direct = false;
  made.queue = on->raw.get();
  made.keep = told.queue;
  return made;
}

Place buffer_place(const Buffer& buffer) {
  const auto& on = queue_of_buffer(buffer);
  Place made;
  made.raw.buffer = buffer.raw.get();
  made.nbytes = buffer.nbytes;
  made.direct = host_reachable(buffer.kind) || on.on_host;
  made.submits_at_once = on.submits_at_once;
  made.queue = on.raw.get();
  return made;
}

ArrayLayout layout_of(const Py_buffer& view) {
  require_sound(view);
  ArrayLayout made;
  made.item = view.itemsize;
  made.type = element_type_of_format(view.format, view.itemsize);
  made.shape.assign(view.shape, view.shape + view.ndim);
  made.strides.assign(view.strides, view.strides + view.ndim);
  require_addresses(view, made);
  return made;
}

std::optional<ArrayPlace> to_array_place(nb::handle object, Access wanted, const char* role) {
  if (const auto* array = typed_array_of(object)) {
    require_forward(*array->layout, role);
    ArrayPlace made{part_place(object, *array, wanted, role), *array->layout};
    drop_backward_strides(made.layout);
    return made;
  }
  if (buffer_of(object) != nullptr || PyObject_CheckBuffer(object.ptr()) == 0) {
    return {};
  }
  ArrayPlace made;
  made.where.memory = std::make_unique<Pinned>();
  auto& view = made.where.memory->view;
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (wanted == Access::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) {
    PyErr_Clear();
    return {};
  }
  if (wanted == Access::write && is_locked_elsewhere(object)) {
    raise_read_only(object, role);
  }
  refuse_references(view, role);
  made.layout = layout_of(view);
  require_forward(made.layout, role);
  drop_backward_strides(made.layout);
  made.where.raw.pointer = view.buf;
  made.where.nbytes =
      is_empty(made.layout) ? 0 : static_cast<std::size_t>(box_of(made.layout).nbytes);
  return made;
}

Place to_place(nb::handle object, Access wanted, const char* role) {
  if (const auto* known = buffer_of(object)) {
    Place made = buffer_place(*known);
    made.keep = nb::borrow(object);
    return made;
  }
  if (const auto* array = typed_array_of(object)) {
    if (!array->layout->is_c_dense) {
      raise_python(PyExc_ValueError, k_not_contiguous, role);
    }
    return part_place(object, *array, wanted, role);
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    return host_place(object, wanted, role);
  }
  if (const auto told = read_interface(object, wanted)) {
    return dense_foreign_place(object, *told, wanted, role);
  }
  raise_python(PyExc_TypeError,
               "%s must be a Buffer, have the buffer protocol (bytes, bytearray, memoryview, "
               "array.array, numpy.ndarray), __sycl_usm_array_interface__ or "
               "__cuda_array_interface__, not %.100s",
               role, Py_TYPE(object.ptr())->tp_name);
}

void require_range(const Place& in, std::size_t nbytes, const char* role) {
  const auto offset = in.raw.offset;
  if (offset > in.nbytes || nbytes > in.nbytes - offset) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "%zu bytes from offset %zu lie outside the %s, which has %zu bytes", nbytes,
                 offset, role, in.nbytes);
  }
}

}  // namespace isthmus::python
