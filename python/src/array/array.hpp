// SPDX-License-Identifier: Apache-2.0
#pragma once
// Creation of arrays, and the functions that implement their operators. Needs the interpreter's
// lock.

#include "buffer/typed_array.hpp"
#include "core/resource_objects.hpp"

namespace isthmus::python {

// A new array in new, uninitialized memory from `resource`, else the current resource, else the
// default pool. `queue` is a Queue. Throws what construct_buffer throws.
[[nodiscard]] nb::object make_fresh_array(SharedLayout layout, isthmus_kind_t kind,
                                          nb::object queue, std::size_t alignment = 0,
                                          const Resource* resource = nullptr);

// Implements Array.copy(): the elements in C order, in new memory of the same kind and queue.
// TypeError if it is not an array.
[[nodiscard]] nb::object copy_of_array(nb::handle object);

// -- for type slots -------------------------------------------------------------------------------

// -1 or nullptr with a Python error set.
[[nodiscard]] PyObject* array_subscript(PyObject* self, PyObject* key) noexcept;
[[nodiscard]] int array_assign(PyObject* self, PyObject* key, PyObject* value) noexcept;
[[nodiscard]] PyObject* array_item(PyObject* self, Py_ssize_t index) noexcept;
int array_get_view(PyObject* self, Py_buffer* view, int flags) noexcept;
void array_release_view(PyObject* self, Py_buffer* view) noexcept;
[[nodiscard]] PyObject* array_to_int(PyObject* self) noexcept;
[[nodiscard]] PyObject* array_to_float(PyObject* self) noexcept;
[[nodiscard]] PyObject* array_to_index(PyObject* self) noexcept;
[[nodiscard]] int array_to_bool(PyObject* self) noexcept;

}  // namespace isthmus::python
