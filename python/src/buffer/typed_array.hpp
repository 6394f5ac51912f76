// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of Array: a typed N-dimensional array over a Buffer of any kind. Needs the
// interpreter's lock.

#include "buffer/array_memory.hpp"
#include "buffer/array_view.hpp"

namespace isthmus::python {

struct TypedArray {
  TypedArray(ArrayMemory&& array_memory, SharedLayout array_layout, std::size_t begin = 0,
             nb::object base_array = nb::object{}, bool locked = false) noexcept
      : memory{std::move(array_memory)},
        layout{std::move(array_layout)},
        offset{begin},
        base{std::move(base_array)},
        is_locked{locked} {}

  // In new memory. `queue` is a Queue.
  TypedArray(BufferHandle raw, nb::object queue, isthmus_kind_t kind,
             SharedLayout array_layout) noexcept
      : memory{std::move(raw), std::move(queue), kind, array_layout->nbytes},
        layout{std::move(array_layout)},
        offset{0},
        is_locked{false} {}

  ArrayMemory memory;
  SharedLayout layout;
  std::size_t offset;  // bytes from the buffer's start to the first element
  nb::object base;     // of a view: the array that it is a view of, which is never a view itself
  bool is_locked;      // read-only, even if its buffer is writable
};

[[nodiscard]] inline TypedArray* typed_array_of(nb::handle object) noexcept {
  return instance_of<TypedArray>(types.typed_array, object);
}
// TypeError for other objects, ValueError for an array whose __init__ never ran; `role` names it.
[[nodiscard]] const TypedArray& require_array(nb::handle object, const char* role);
[[nodiscard]] inline const Buffer& buffer_in(const TypedArray& array) { return array.memory.get(); }
[[nodiscard]] inline bool is_read_only(const TypedArray& array) noexcept {
  return array.is_locked || array.memory.read_only();
}
// Whether the array, or all of its memory, was freed.
[[nodiscard]] bool is_freed(const TypedArray& array) noexcept;
// ClosedError if the array was freed.
void require_live(const TypedArray& array);
[[nodiscard]] inline ArrayView view_of(const TypedArray& array) {
  const auto& layout = *array.layout;
  return {buffer_in(array), array.memory.object(), array.offset,
          layout.shape,     layout.strides,        *layout.type,
          layout.nbytes,    layout.is_c_dense,     is_read_only(array)};
}

// Performs no checks: `buffer` must be an initialized Buffer that contains all elements of the
// layout with the first at `offset`, which is a multiple of the alignment of the type. Neither
// queries the driver nor imports NumPy.
[[nodiscard]] nb::object make_typed_array(nb::object buffer, SharedLayout layout,
                                          std::size_t offset = 0);
// A view of `object`, whose array is `array`, with that layout, which must fit as above.
// ClosedError if it was freed.
[[nodiscard]] nb::object make_array_view(nb::handle object, const TypedArray& array,
                                         SharedLayout layout, std::size_t offset);
// The same, with the offset of the layout. Throws TooFar.
[[nodiscard]] inline nb::object make_array_view(nb::handle object, const TypedArray& array,
                                                ArrayLayout&& layout) {
  const auto offset = array.offset + static_cast<std::size_t>(layout.offset);
  return make_array_view(object, array, share_layout(std::move(layout)), offset);
}

// nullptr with a Python error set if its __init__ never ran.
[[nodiscard]] const TypedArray* ready_array(PyObject* self) noexcept;

}  // namespace isthmus::python
