// SPDX-License-Identifier: Apache-2.0
#include "buffer/typed_array.hpp"

#include "core/errors.hpp"

namespace isthmus::python {

const TypedArray& require_array(nb::handle object, const char* role) {
  const auto* found = typed_array_of(object);
  if (found == nullptr && PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(
                                                               types.typed_array.ptr())) != 0) {
    raise_python(PyExc_ValueError, "Array.__init__() was not called");
  }
  if (found == nullptr) {
    raise_wrong_type(object, "%s must be an Array", role);
  }
  return *found;
}

const TypedArray* ready_array(PyObject* self) noexcept {
  const auto* array = typed_array_of(self);
  if (array == nullptr) {
    PyErr_SetString(PyExc_ValueError, "Array.__init__() was not called");
  }
  return array;
}

bool is_freed(const TypedArray& array) noexcept {
  auto info = sized<isthmus_buffer_info_t>();
  return isthmus_buffer_info(array.memory.raw(), &info) == ISTHMUS_ERROR_CLOSED;
}

void require_live(const TypedArray& array) {
  if (is_freed(array)) {
    raise_python(error_type(ISTHMUS_ERROR_CLOSED), "this array of shape %R was freed",
                 to_tuple(array.layout->shape).ptr());
  }
}

nb::object make_typed_array(nb::object buffer, SharedLayout layout, std::size_t offset) {
  return make_instance<TypedArray>(types.typed_array, ArrayMemory{std::move(buffer)},
                                   std::move(layout), offset);
}

// The offset of a view without elements is arbitrary: it is that of `array`, which lies in the
// buffer.
nb::object make_array_view(nb::handle object, const TypedArray& array, SharedLayout layout,
                           std::size_t offset) {
  require_live(array);
  offset = layout->size == 0 ? array.offset : offset;
  return make_instance<TypedArray>(
      types.typed_array, ArrayMemory{array.memory.object()}, std::move(layout), offset,
      array.base.is_valid() ? array.base : nb::borrow(object), array.is_locked);
}

}  // namespace isthmus::python
