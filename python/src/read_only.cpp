#include "read_only.hpp"

#include <cstring>

#include "buffer.hpp"
#include "errors.hpp"
#include "typed_array.hpp"

namespace isthmus::python {
namespace {

void forget_exception() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) {
    raise_set();
  }
  PyErr_Clear();
}

bool is_view_read_only(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return false;
  }
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) {
    forget_exception();
    return false;
  }
  const bool is_read_only = view.readonly != 0;
  PyBuffer_Release(&view);
  return is_read_only;
}

// The flag beside the address, as all of the dictionaries have it.
bool is_entry_read_only(nb::handle object, const char* protocol) {
  const nb::object entries = nb::steal(PyObject_GetAttrString(object.ptr(), protocol));
  if (!entries.is_valid()) {
    forget_exception();
    return false;
  }
  PyObject* const data =
      PyDict_Check(entries.ptr()) != 0 ? PyDict_GetItemString(entries.ptr(), "data") : nullptr;
  if (data == nullptr || PyTuple_Check(data) == 0 || PyTuple_GET_SIZE(data) != 2) {
    return false;
  }
  const int is_read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
  if (is_read_only < 0) {
    forget_exception();
  }
  return is_read_only > 0;
}

}  // namespace

bool says_read_only(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr()) != 0 || typed_array_of(object) != nullptr ||
      buffer_of(object) != nullptr) {
    return false;
  }
  if (is_view_read_only(object)) {
    return true;
  }
  for (const char* each :
       {"__array_interface__", "__cuda_array_interface__", "__sycl_usm_array_interface__"}) {
    if (is_entry_read_only(object, each)) {
      return true;
    }
  }
  return false;
}

bool is_locked_elsewhere(nb::handle object) {
  const bool is_numpys = std::strcmp(Py_TYPE(object.ptr())->tp_name, "numpy.ndarray") == 0;
  const auto type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return !is_numpys && PyObject_HasAttrString(type, "__array_interface__") != 0 &&
         says_read_only(object);
}

}  // namespace isthmus::python
