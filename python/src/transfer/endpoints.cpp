// SPDX-License-Identifier: Apache-2.0
// Python objects as endpoints of a copy.

#include <algorithm>
#include <memory>

#include "buffer/typed_array.hpp"
#include "transfer/read_only.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

constexpr const char* k_not_contiguous =
    "%s is not contiguous: pass numpy.ascontiguousarray(...) of it, or copy it with "
    "copy_nd";

bool holds_references(const Py_buffer& view) {
  for (const char* character = view.format; character != nullptr && *character != '\0';
       ++character) {
    if (*character == 'O') {
      return true;
    }
  }
  return false;
}

// Checks the fields that an exporter sets for PyBUF_STRIDES, before anything is computed from them.
void require_valid_fields(const Py_buffer& view) {
  const bool is_incomplete = view.ndim > 0 && (view.shape == nullptr || view.strides == nullptr);
  if (view.ndim < 0 || view.ndim > PyBUF_MAX_NDIM || is_incomplete || view.itemsize < 0 ||
      view.len < 0) {
    raise_python(PyExc_BufferError,
                 "invalid buffer: %d dimensions, %zd bytes and items of %zd bytes%s", view.ndim,
                 view.len, view.itemsize, is_incomplete ? ", without shape or strides" : "");
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
  if (layout.is_empty()) {
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
    // rejected below
  }
  raise_python(
      PyExc_BufferError,
      "invalid buffer: shape %R with strides %R from address %p exceeds the address space, "
      "2**64",
      to_tuple(layout.shape).ptr(), to_tuple(layout.strides).ptr(), view.buf);
}

void require_no_references(const Py_buffer& view, const char* role) {
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

// Throws the reason that an object exported no view: read-only, not contiguous, or its own error.
[[noreturn]] void raise_view_error(nb::handle object, Access access, const char* role) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Pinned probe;
  if (PyObject_GetBuffer(object.ptr(), &probe.view, PyBUF_FULL_RO) == 0) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    if (access == Access::write && probe.view.readonly != 0) {
      raise_read_only(object, role);
    }
    raise_python(PyExc_ValueError, k_not_contiguous, role);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  raise_set();
}

// Requests a view that is contiguous in C order, else in Fortran order, else one of a type without
// a format (dates). Returns false if all requests fail.
bool get_contiguous_view(nb::handle object, int extra, Py_buffer& view) {
  for (const int flags :
       {PyBUF_ND | PyBUF_FORMAT, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT, PyBUF_SIMPLE}) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object.ptr(), &view, flags | extra) == 0) {
      return true;
    }
  }
  return false;
}

Endpoint dense_foreign_endpoint(nb::handle object, const ArrayInterface& interface, Access access,
                                const char* role) {
  if (!interface.contiguous) {
    raise_python(PyExc_ValueError, k_not_contiguous, role);
  }
  return foreign_endpoint(object, interface, access, role);
}

Endpoint host_endpoint(nb::handle object, Access access, const char* role) {
  Endpoint endpoint;
  endpoint.memory = std::make_unique<Pinned>();
  auto& view = endpoint.memory->view;
  if (!get_contiguous_view(object, access == Access::write ? PyBUF_WRITABLE : 0, view)) {
    nb::python_error error;  // CuPy's arrays have the buffer protocol but raise
    if (const auto interface = read_interface(object, access)) {
      return dense_foreign_endpoint(object, *interface, access, role);
    }
    error.restore();
    raise_view_error(object, access, role);
  }
  require_no_references(view, role);
  if (view.len < 0 || (view.len > 0 && view.buf == nullptr)) {
    raise_python(PyExc_BufferError, "invalid buffer: %zd bytes at %p", view.len, view.buf);
  }
  if (access == Access::write && is_read_only_elsewhere(object)) {
    raise_read_only(object, role);
  }
  endpoint.raw.pointer = view.buf;
  endpoint.nbytes = static_cast<std::size_t>(view.len);
  return endpoint;
}

void require_forward(const ArrayLayout& layout, const char* role) {
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.strides[i] < 0 && layout.shape[i] > 1) {
      raise_python(PyExc_ValueError,
                   "dimension %zu of the %s has a negative stride of %lld bytes: use a "
                   "contiguous array, and copy between it and this one",
                   i, role, static_cast<long long>(layout.strides[i]));
    }
  }
}

// Sets negative strides to 0: after require_forward only extents of 1 or less, whose strides are
// never used, have any.
void drop_backward_strides(ArrayLayout& layout) {
  for (auto& each : layout.strides) {
    each = std::max<std::int64_t>(each, 0);
  }
}

// The part of the array's buffer that its elements occupy. No element lies before the first
// one.
Endpoint slice_endpoint(nb::handle object, const TypedArray& array, Access access,
                        const char* role) {
  if (access == Access::write && array.is_locked) {
    raise_read_only(object, role);
  }
  const auto& parent = buffer_in(array);
  Endpoint endpoint = buffer_endpoint(parent);
  check(isthmus_buffer_slice(parent.raw.get(), array.offset, array.layout->extent,
                             endpoint.adopted.out()));
  endpoint.raw.buffer = endpoint.adopted.get();
  endpoint.nbytes = array.layout->extent;
  endpoint.owner = array.memory.object();
  return endpoint;
}

}  // namespace

Endpoint foreign_endpoint(nb::handle object, const ArrayInterface& interface, Access access,
                          const char* role) {
  if (access == Access::write && interface.memory.read_only) {
    raise_read_only(object, role);
  }
  Endpoint endpoint;
  const auto* queue = queue_of(interface.queue);
  if (interface.empty && interface.memory.pointer == nullptr) {
    static char placeholder = 0;
    endpoint.raw.pointer = &placeholder;
    return endpoint;
  }
  check(isthmus_buffer_adopt(interface.memory.pointer, interface.memory.nbytes,
                             interface.memory.kind, interface.memory.read_only ? 1 : 0,
                             queue->raw.get(), keep_alive(object), endpoint.adopted.out()));
  endpoint.raw.buffer = endpoint.adopted.get();
  endpoint.nbytes = interface.empty ? 0 : interface.memory.nbytes;
  endpoint.direct = false;
  endpoint.queue = queue->raw.get();
  endpoint.owner = interface.queue;
  return endpoint;
}

Endpoint buffer_endpoint(const Buffer& buffer) {
  const auto& queue = queue_of_buffer(buffer);
  Endpoint endpoint;
  endpoint.raw.buffer = buffer.raw.get();
  endpoint.nbytes = buffer.nbytes;
  endpoint.direct = host_reachable(buffer.kind) || queue.is_on_host;
  endpoint.submits_at_once = queue.submits_at_once;
  endpoint.queue = queue.raw.get();
  return endpoint;
}

ArrayLayout layout_of(const Py_buffer& view) {
  require_valid_fields(view);
  ArrayLayout layout;
  layout.item = view.itemsize;
  layout.type = element_type_of_format(view.format, view.itemsize);
  layout.shape.assign(view.shape, view.shape + view.ndim);
  layout.strides.assign(view.strides, view.strides + view.ndim);
  require_addresses(view, layout);
  return layout;
}

std::optional<ArrayEndpoint> to_array_endpoint(nb::handle object, Access access, const char* role) {
  if (const auto* array = typed_array_of(object)) {
    require_forward(*array->layout, role);
    ArrayEndpoint result{slice_endpoint(object, *array, access, role), *array->layout};
    drop_backward_strides(result.layout);
    return result;
  }
  if (buffer_of(object) != nullptr || PyObject_CheckBuffer(object.ptr()) == 0) {
    return {};
  }
  ArrayEndpoint result;
  result.endpoint.memory = std::make_unique<Pinned>();
  auto& view = result.endpoint.memory->view;
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (access == Access::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) {
    PyErr_Clear();
    return {};
  }
  if (access == Access::write && is_read_only_elsewhere(object)) {
    raise_read_only(object, role);
  }
  require_no_references(view, role);
  result.layout = layout_of(view);
  require_forward(result.layout, role);
  drop_backward_strides(result.layout);
  result.endpoint.raw.pointer = view.buf;
  result.endpoint.nbytes =
      result.layout.is_empty() ? 0 : static_cast<std::size_t>(box_of(result.layout).nbytes);
  return result;
}

Endpoint to_endpoint(nb::handle object, Access access, const char* role) {
  if (const auto* buffer = buffer_of(object)) {
    Endpoint endpoint = buffer_endpoint(*buffer);
    endpoint.owner = nb::borrow(object);
    return endpoint;
  }
  if (const auto* array = typed_array_of(object)) {
    if (!array->layout->is_c_dense) {
      raise_python(PyExc_ValueError, k_not_contiguous, role);
    }
    return slice_endpoint(object, *array, access, role);
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    return host_endpoint(object, access, role);
  }
  if (const auto interface = read_interface(object, access)) {
    return dense_foreign_endpoint(object, *interface, access, role);
  }
  raise_wrong_type(
      object,
      "%s must be a Buffer, have the buffer protocol (bytes, bytearray, memoryview, array.array, "
      "numpy.ndarray), __sycl_usm_array_interface__ or __cuda_array_interface__",
      role);
}

void require_range(const Endpoint& endpoint, std::size_t nbytes, const char* role) {
  const auto offset = endpoint.raw.offset;
  if (offset > endpoint.nbytes || nbytes > endpoint.nbytes - offset) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "%zu bytes from offset %zu lie outside the %s, which has %zu bytes", nbytes,
                 offset, role, endpoint.nbytes);
  }
}

}  // namespace isthmus::python
