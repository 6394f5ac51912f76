// SPDX-License-Identifier: Apache-2.0
#include "transfer/read_only.hpp"

#include <cstring>

#include "buffer/buffer.hpp"
#include "buffer/typed_array.hpp"
#include "core/errors.hpp"
#include "layout/dlpack_tensor.hpp"

namespace isthmus::python {
namespace {

// The start of NumPy's PyArrayInterface, which a capsule without a name contains.
struct ArrayStruct {
  int two;  // 2 in a valid structure
  int ndim;
  char kind;
  int item, flags;
};
constexpr int k_writeable = 0x0400;  // NPY_ARRAY_WRITEABLE

void clear_exception() {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0 ||
      PyErr_ExceptionMatches(PyExc_MemoryError) != 0) {
    raise_set();
  }
  PyErr_Clear();
}

// Inspects the object itself, as NumPy does for its protocols, and not its type.
bool has_attribute(nb::handle object, const char* name) {
  if (const nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), name))) {
    return true;
  }
  clear_exception();
  return false;
}

bool is_view_read_only(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    return false;
  }
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) {
    clear_exception();
    return false;
  }
  const bool is_read_only = view.readonly != 0;
  PyBuffer_Release(&view);
  return is_read_only;
}

// The read-only flag beside the address, which is in every interface dictionary.
bool is_entry_read_only(nb::handle object, const char* protocol) {
  const nb::object entries = nb::steal(PyObject_GetAttrString(object.ptr(), protocol));
  if (!entries.is_valid()) {
    clear_exception();
    return false;
  }
  PyObject* const data =
      PyDict_Check(entries.ptr()) != 0 ? PyDict_GetItemString(entries.ptr(), "data") : nullptr;
  if (data == nullptr || PyTuple_Check(data) == 0 || PyTuple_GET_SIZE(data) != 2) {
    return false;
  }
  const int is_read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
  if (is_read_only < 0) {
    clear_exception();
  }
  return is_read_only > 0;
}

bool is_struct_read_only(nb::handle object) {
  const nb::object capsule = nb::steal(PyObject_GetAttrString(object.ptr(), "__array_struct__"));
  if (!capsule.is_valid()) {
    clear_exception();
    return false;
  }
  if (PyCapsule_IsValid(capsule.ptr(), nullptr) == 0) {
    return false;
  }
  const auto* array_struct =
      static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  return array_struct->two == 2 && (array_struct->flags & k_writeable) == 0;
}

bool is_flag_set(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::k_versioned_name) == 0) {
    return false;
  }
  const auto* tensor = static_cast<const dlpack::ManagedVersioned*>(
      PyCapsule_GetPointer(capsule.ptr(), dlpack::k_versioned_name));
  return tensor->version.major == 1 && (tensor->flags & dlpack::k_read_only) != 0;
}

// Exports the memory, reads the flag, and drops the capsule unconsumed, which releases the memory.
bool is_dlpack_read_only(nb::handle object) {
  const auto type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  if (PyObject_HasAttrString(type, "__dlpack__") == 0) {
    return false;
  }
  try {
    const auto device = dlpack::device_of_producer(object);
    nb::dict request;
    request["max_version"] = nb::make_tuple(1, 0);
    if (device.type == dlpack::k_cuda || device.type == dlpack::k_cuda_managed) {
      request["stream"] = -1;  // no order is needed
    }
    return is_flag_set(nb::object(object.attr("__dlpack__")(**request)));
  } catch (nb::python_error& failed) {
    failed.restore();
    clear_exception();
    return false;
  }
}

bool is_isthmus_object(nb::handle object) {
  return typed_array_of(object) != nullptr || buffer_of(object) != nullptr;
}

}  // namespace

bool reports_read_only(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr()) != 0 || is_isthmus_object(object)) {
    return false;
  }
  if (is_view_read_only(object) || is_struct_read_only(object)) {
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

bool is_read_only_by_any(nb::handle object) {
  return reports_read_only(object) || (!is_isthmus_object(object) && is_dlpack_read_only(object));
}

bool is_read_only_elsewhere(nb::handle object) {
  if (std::strcmp(Py_TYPE(object.ptr())->tp_name, "numpy.ndarray") == 0 ||
      PyByteArray_CheckExact(object.ptr()) != 0 || PyMemoryView_Check(object.ptr()) != 0) {
    return false;
  }
  for (const char* each : {"__array_interface__", "__array_struct__", "__dlpack__",
                           "__cuda_array_interface__", "__sycl_usm_array_interface__"}) {
    if (has_attribute(object, each)) {
      return is_read_only_by_any(object);
    }
  }
  return false;
}

}  // namespace isthmus::python
