// SPDX-License-Identifier: Apache-2.0
// Elements of Array: reads and writes single elements, and converts them to Python numbers.

#include "array/elements.hpp"

#include "array/bindings.hpp"
#include "array/keys.hpp"
#include "array/values.hpp"
#include "core/arguments.hpp"
#include "core/interned.hpp"
#include "core/waiting.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

// A context variable: True inside allow_scalar(). Lives as long as the module.
PyObject* scalar_is_allowed = nullptr;

void require_scalar_access(const Buffer& buffer) {
  PyObject* allowed = nullptr;
  if (PyContextVar_Get(scalar_is_allowed, nullptr, &allowed) != 0) {
    raise_set();
  }
  const nb::object held = nb::steal(allowed);
  if (!held.is(Py_True)) {
    static_cast<void>(info_of(buffer));  // throws ClosedError for freed memory
    raise_python(PyExc_TypeError,
                 "access to a single element of memory of kind '%U' needs a separate transfer: "
                 "copy the array with to_numpy(), use memory of kind 'shared' or 'host', or allow "
                 "it in `with isthmus.allow_scalar():`",
                 kind_name(buffer.kind).ptr());
  }
}

isthmus_status_t wait_for_access(Access access, isthmus_buffer_t* range_buffer) {
  return access == Access::write ? wait_for_buffer(range_buffer, -1)
                                 : wait_in_slices(-1, [range_buffer](std::int64_t slice) {
                                     return isthmus_buffer_wait_for_writers(range_buffer, slice);
                                   });
}

// Waits for the operations pending on these bytes, or only for those that write to them, and not
// for operations on other bytes of the buffer.
void wait_for_bytes(const Buffer& buffer, std::size_t offset, std::size_t nbytes, Access access) {
  auto* const wait =
      access == Access::write ? &isthmus_buffer_wait : &isthmus_buffer_wait_for_writers;
  auto status = wait(buffer.raw.get(), 0);
  if (status == ISTHMUS_ERROR_TIMEOUT || status == ISTHMUS_ERROR_DEPENDENCY) {
    const auto slice =
        make_handle<BufferHandle>(isthmus_buffer_slice, buffer.raw.get(), offset, nbytes);
    status = wait_for_access(access, slice.get());
  }
  check(status);
}

// The host's pointer to the element, once it may be read or written. The caller must hold a
// reference to the Buffer, since another thread may free the array meanwhile.
char* element_pointer(const Buffer& buffer, std::size_t offset, std::size_t nbytes, Access access) {
  if (isthmus_buffer_idle(buffer.raw.get()) == 0) [[unlikely]] {
    wait_for_bytes(buffer, offset, nbytes, access);
  }
  auto* const base = static_cast<char*>(isthmus_buffer_pointer(buffer.raw.get()));
  if (base == nullptr) [[unlikely]] {
    static_cast<void>(info_of(buffer));
  }
  return base + offset;
}

// Reads the element by a copy, into memory that an interrupted copy keeps alive.
nb::object fetch_element(const TypedArray& array, std::size_t offset) {
  require_scalar_access(buffer_in(array));
  const auto& type = *array.layout->type;
  const auto bytes = make_bytes(type.item);
  copy_out({buffer_in(array), array.memory.object(), offset, {}, {}, type, type.item, true, true},
           PyBytes_AS_STRING(bytes.ptr()), bytes);
  return to_number(PyBytes_AS_STRING(bytes.ptr()), type);
}

const TypedArray& require_one_element(nb::handle object) {
  const auto& array = require_array(object, "x");
  if (array.layout->size != 1) {
    raise_python(
        PyExc_TypeError,
        "an array of shape %R cannot be converted to a number: only an array of one element can",
        to_tuple(array.layout->shape).ptr());
  }
  return array;
}

nb::object only_element(nb::handle object) {
  const auto& array = require_one_element(object);
  return read_element(array, array.offset);
}

// -- methods --------------------------------------------------------------------------------------

// The offset of the element with that index in C order.
std::size_t offset_in_c_order(const TypedArray& array, nb::handle index) {
  const auto& layout = *array.layout;
  auto remaining = to_position(to_integer(index, "index"), layout.size, 0);
  auto offset = array.offset;
  for (auto i = layout.shape.size(); i-- > 0;) {
    offset += static_cast<std::size_t>(remaining % layout.shape[i] * layout.strides[i]);
    remaining /= layout.shape[i];
  }
  return offset;
}

nb::object item(nb::handle object, const nb::args& indices) {
  const auto& array = require_array(object, "x");
  if (indices.size() == 0) {
    return only_element(object);
  }
  nb::object key = indices;
  if (indices.size() == 1) {
    key = nb::object{indices[0]};
    if (PyTuple_Check(key.ptr()) == 0) {
      return read_element(array, offset_in_c_order(array, key));
    }
  }
  const auto found = element_at(array, KeyList{key.ptr()});
  if (!found) {
    raise_python(PyExc_ValueError,
                 "item() takes one integer, or one for each of %zu dimensions, not %R",
                 array.layout->shape.size(), key.ptr());
  }
  return read_element(array, *found);
}

// A nested list of elements packed in C order, starting at `cursor`, which is moved past them.
nb::object list_of(const ArrayLayout& layout, std::size_t axis, const char*& cursor) {
  if (axis == layout.shape.size()) {
    nb::object number = to_number(cursor, *layout.type);
    cursor += layout.item;
    return number;
  }
  nb::object list = steal_or_raise(PyList_New(static_cast<Py_ssize_t>(layout.shape[axis])));
  for (Py_ssize_t i = 0; i < layout.shape[axis]; ++i) {
    PyList_SET_ITEM(list.ptr(), i, list_of(layout, axis + 1, cursor).release().ptr());
  }
  return list;
}

nb::object to_list(const TypedArray& self) {
  const auto bytes = make_bytes(self.layout->nbytes);
  copy_out(view_of(self), PyBytes_AS_STRING(bytes.ptr()), bytes);
  const char* cursor = PyBytes_AS_STRING(bytes.ptr());
  return list_of(*self.layout, 0, cursor);
}

nb::object as_complex(nb::handle object) {
  return nb::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type),
                                       only_element(object).ptr()));
}

template <class Convert>
PyObject* converted(PyObject* self, Convert convert) noexcept {
  return result_of([=] {
    const nb::object number = only_element(self);
    return nb::steal(convert(number.ptr()));
  });
}

}  // namespace

nb::object read_element(const TypedArray& array, std::size_t offset) {
  const nb::object held = array.memory.object();  // another thread may free the array meanwhile
  const auto& memory = buffer_in(array);
  if (!host_reachable(memory.kind)) {
    return fetch_element(array, offset);
  }
  const auto& type = *array.layout->type;
  return to_number(element_pointer(memory, offset, type.item, Access::read), type);
}

bool write_element(const TypedArray& array, std::size_t offset, nb::handle value) {
  const nb::object held = array.memory.object();
  const auto& memory = buffer_in(array);
  if (!host_reachable(memory.kind)) {
    require_scalar_access(memory);
    return false;
  }
  const auto& type = *array.layout->type;
  const auto number = to_value(value, type, ISTHMUS_CASTING_UNSAFE);
  if (!number) {
    return false;
  }
  if (is_read_only(array)) {
    raise_python(error_type(ISTHMUS_ERROR_READ_ONLY), "this array is read-only");
  }
  return store_value(*number, element_pointer(memory, offset, type.item, Access::write), type);
}

nb::object element_view(nb::handle object, const TypedArray& array, std::size_t offset) {
  return make_array_view(object, array, dense_layout({}, *array.layout->type), offset);
}

PyObject* array_to_int(PyObject* self) noexcept {
  return converted(self, [](PyObject* number) { return PyNumber_Long(number); });
}

PyObject* array_to_float(PyObject* self) noexcept {
  return converted(self, [](PyObject* number) { return PyNumber_Float(number); });
}

PyObject* array_to_index(PyObject* self) noexcept {
  return result_of([=] {
    const auto& array = require_array(self, "x");
    const char kind = array.layout->type->kind;
    if (!array.layout->shape.empty() || (kind != 'i' && kind != 'u')) {
      raise_python(PyExc_TypeError,
                   "only an integer array of 0 dimensions can be used as an index");
    }
    return read_element(array, array.offset);
  });
}

int array_to_bool(PyObject* self) noexcept {
  const auto truth = nb::steal(result_of([=] {
    const auto& array = require_array(self, "x");
    if (array.layout->size != 1) {
      raise_python(PyExc_ValueError,
                   "the truth value of an array of %lld elements is ambiguous: use a copy, as in "
                   "array.to_numpy().any()",
                   static_cast<long long>(array.layout->size));
    }
    return nb::object(nb::bool_(is_true(read_element(array, array.offset))));
  }));
  return !truth.is_valid() ? -1 : truth.is(Py_True) ? 1 : 0;
}

void bind_array_elements(nb::module_& module, nb::class_<TypedArray>& bound) {
  scalar_is_allowed = PyContextVar_New("isthmus.allow_scalar", Py_False);
  if (scalar_is_allowed == nullptr) {
    raise_set();
  }
  module.attr("_scalar_is_allowed") = nb::borrow(scalar_is_allowed);
  bound
      .def("item", &item, nb::arg("indices"), nb::sig("def item(self, *indices: Any) -> Any"),
           "An element as a Python number: the one element of an array of size 1, otherwise the\n"
           "element with that index in C order, or with an integer for each dimension. Waits, and\n"
           "rejects device kind, as array[i] does. Raises IndexError out of bounds.")
      .def("tolist", &to_list, nb::sig("def tolist(self) -> Any"),
           "A copy as nested lists of Python numbers, of any kind; a number for an array\n"
           "without dimensions. Waits for pending work.")
      .def("__complex__", &as_complex, nb::sig("def __complex__(self) -> complex"));
}

}  // namespace isthmus::python
