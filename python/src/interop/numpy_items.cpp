// SPDX-License-Identifier: Apache-2.0
// Objects that NumPy reads item by item, and whether they may contain more than numbers.

#include "interop/numpy_items.hpp"

#include "core/errors.hpp"
#include "core/objects.hpp"
#include "interop/bindings.hpp"

namespace isthmus::python {
namespace {

constexpr int k_max_depth = 64;  // NumPy's arrays have no more dimensions

// Never released. Null before NumPy is imported, when there can be no object of these types.
PyTypeObject* array_type = nullptr;
PyTypeObject* number_type = nullptr;

PyTypeObject* type_in(nb::handle numpy, const char* name) {
  nb::object found = nb::getattr(numpy, name, nb::none());  // another thread may be importing it
  return found.is_none() ? nullptr : reinterpret_cast<PyTypeObject*>(found.release().ptr());
}

void load_types() {
  if (number_type != nullptr) [[likely]] {
    return;
  }
  const nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
  if (numpy.is_valid()) {
    array_type = type_in(numpy, "ndarray");
    number_type = array_type != nullptr ? type_in(numpy, "generic") : nullptr;
  }
}

bool is_numpy_type(PyTypeObject* type) noexcept {
  return number_type != nullptr &&
         (PyType_IsSubtype(type, array_type) != 0 || PyType_IsSubtype(type, number_type) != 0);
}

// Whether NumPy reads no array interface of objects of exactly this type, nor of their items.
bool is_plain_type(PyTypeObject* type) noexcept {
  return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
         type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyBytes_Type ||
         type == &PyRange_Type || type == Py_TYPE(Py_None) || is_numpy_type(type);
}

bool is_list(PyObject* item) noexcept {
  return PyList_CheckExact(item) || PyTuple_CheckExact(item);
}

bool are_plain(PyObject** items, Py_ssize_t count, int depth) noexcept;

// Calls no Python code, so that the list cannot change meanwhile.
bool is_plain(PyObject* item, int depth) noexcept {
  if (is_list(item)) {
    return depth < k_max_depth &&
           are_plain(PySequence_Fast_ITEMS(item), PySequence_Fast_GET_SIZE(item), depth + 1);
  }
  return is_plain_type(Py_TYPE(item));
}

bool are_plain(PyObject** items, Py_ssize_t count, int depth) noexcept {
  const PyTypeObject* last = nullptr;  // the last plain type: most lists have items of one type
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (Py_TYPE(items[i]) == last) {
      continue;
    }
    if (!is_plain(items[i], depth)) {
      return false;
    }
    last = is_list(items[i]) ? nullptr : Py_TYPE(items[i]);
  }
  return true;
}

bool is_sequence(nb::handle object) {
  if (PySequence_Check(object.ptr()) == 0 || PyUnicode_Check(object.ptr()) != 0 ||
      is_array(object)) {
    return false;
  }
  if (PySequence_Size(object.ptr()) < 0) {
    static_cast<void>(take_foreign_error());
    return false;
  }
  return true;
}

nb::object to_check(nb::handle object) {
  load_types();
  if (is_plain(object.ptr(), 0)) {
    return nb::none();
  }
  if (!is_sequence(object)) {
    return nb::borrow(object);
  }
  nb::object items = nb::steal(PySequence_List(object.ptr()));
  if (!items.is_valid()) {  // NumPy raises the error again, or treats the object as a number
    static_cast<void>(take_foreign_error());
    return nb::borrow(object);
  }
  return is_plain(items.ptr(), 0) ? nb::none() : items;
}

}  // namespace

bool is_array(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    return true;
  }
  const auto type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  for (const char* each : {"__dlpack__", "__array__", "__array_interface__", "__array_struct__",
                           "__sycl_usm_array_interface__", "__cuda_array_interface__"}) {
    // The type is queried first, which does not execute properties.
    if (PyObject_HasAttrString(type, each) != 0 ||
        PyObject_HasAttrString(object.ptr(), each) != 0) {
      return true;
    }
  }
  return false;
}

bool is_numpy_scalar(nb::handle object) {
  load_types();
  return number_type != nullptr && PyObject_TypeCheck(object.ptr(), number_type) != 0;
}

bool is_of_numpy(nb::handle object) {
  load_types();
  return is_numpy_type(Py_TYPE(object.ptr()));
}

void bind_numpy_items(nb::module_& module) {
  module.def("_to_check", &to_check, nb::arg("obj").none(),
             nb::sig("def _to_check(obj: object) -> Any"),
             "Returns the objects whose array interface NumPy may read: a list of the items of a\n"
             "sequence, else `obj`. None for numbers, text, NumPy's own objects, and sequences of\n"
             "these.");
  module.def("_is_array", &is_array, nb::arg("obj").none(),
             nb::sig("def _is_array(obj: object) -> bool"),
             "Whether the object exports elements, by the buffer protocol or another one.");
  module.def("_is_of_numpy", &is_of_numpy, nb::arg("obj").none(),
             nb::sig("def _is_of_numpy(obj: object) -> bool"),
             "Whether the object is a NumPy array or scalar. Does not import NumPy.");
}

}  // namespace isthmus::python
