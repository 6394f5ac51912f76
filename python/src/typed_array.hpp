#pragma once
// A typed N-dimensional array over a Buffer of any kind.

#include "array_view.hpp"

namespace isthmus::python {

struct typed_array {
  nb::object buffer_object;  // a Buffer
  shared_layout layout;
  std::size_t offset = 0;  // bytes from the buffer's start to the first element
};

[[nodiscard]] inline typed_array* typed_array_of(nb::handle object) noexcept {
  return instance_of<typed_array>(types.typed_array, object);
}
[[nodiscard]] inline const buffer& buffer_in(const typed_array& array) noexcept {
  return *nb::inst_ptr<buffer>(array.buffer_object);
}
[[nodiscard]] inline array_view view_of(const typed_array& array) noexcept {
  const auto& layout = *array.layout;
  return {buffer_in(array), array.buffer_object, array.offset,  layout.shape,
          layout.strides,   *layout.type,        layout.nbytes, layout.is_c_dense};
}

// Checks nothing. Pre: `buffer` is a ready Buffer in which all of the layout's extent lies from
// `offset` on, at a multiple of its type's alignment. Neither asks the driver nor imports NumPy.
[[nodiscard]] nb::object make_typed_array(nb::object buffer, shared_layout layout,
                                           std::size_t offset = 0);

// For array[key].
[[nodiscard]] PyObject* array_subscript(PyObject* self, PyObject* key) noexcept;

void bind_array_views(nb::class_<typed_array>& bound);
void bind_array_copies(nb::class_<typed_array>& bound);

}  // namespace isthmus::python
