// SPDX-License-Identifier: Apache-2.0
// The functions that Cython modules call after `cimport isthmus`: __pyx_capi__, the table in which
// Cython looks up the functions of isthmus/__init__.pxd. The name of a capsule is the C type of its
// function, as Cython writes it.

#include "buffer/buffer.hpp"
#include "interop/bindings.hpp"

namespace isthmus::python {
namespace {

template <class Object>
auto* handle_in(PyObject* object, Object* wrapper, const char* name) noexcept {
  if (wrapper == nullptr) {
    PyErr_Format(PyExc_TypeError, "expected an isthmus.%s, not %.100s", name,
                 Py_TYPE(object)->tp_name);
  }
  return wrapper != nullptr ? wrapper->raw.get() : nullptr;
}

isthmus_device_t* device_handle_of(PyObject* object) {
  return handle_in(object, device_of(object), "Device");
}
isthmus_context_t* context_handle_of(PyObject* object) {
  return handle_in(object, context_of(object), "Context");
}
isthmus_queue_t* queue_handle_of(PyObject* object) {
  return handle_in(object, queue_of(object), "Queue");
}
isthmus_event_t* event_handle_of(PyObject* object) {
  return handle_in(object, event_of(object), "Event");
}
isthmus_buffer_t* buffer_handle_of(PyObject* object) {
  return handle_in(object, buffer_of(object), "Buffer");
}

// Sets the subclass of isthmus.Error for a status, with this thread's message. Always returns -1.
int raise_error(isthmus_status_t status) noexcept {
  try {
    const nb::object error = error_object(status);
    if (error.is_valid()) {
      PyErr_SetObject(error_type(status), error.ptr());
    }
  } catch (nb::python_error& instead) {
    instead.restore();
  }
  return -1;
}

template <class Function>
void publish(nb::dict& functions, const char* name, Function* function, const char* type) {
  functions[name] = nb::steal(PyCapsule_New(reinterpret_cast<void*>(function), type, nullptr));
}

}  // namespace

void bind_c_api(nb::module_& module) {
  nb::dict functions;
  publish(functions, "device_handle", &device_handle_of, "isthmus_device_t *(PyObject *)");
  publish(functions, "context_handle", &context_handle_of, "isthmus_context_t *(PyObject *)");
  publish(functions, "queue_handle", &queue_handle_of, "isthmus_queue_t *(PyObject *)");
  publish(functions, "event_handle", &event_handle_of, "isthmus_event_t *(PyObject *)");
  publish(functions, "buffer_handle", &buffer_handle_of, "isthmus_buffer_t *(PyObject *)");
  publish(functions, "raise_error", &raise_error, "int (isthmus_status_t)");
  module.attr("__pyx_capi__") = functions;
}

}  // namespace isthmus::python
