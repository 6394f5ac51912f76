// SPDX-License-Identifier: Apache-2.0
#include "core/errors.hpp"

#include <array>
#include <cstdarg>
#include <string>

#include "core/gil.hpp"
#include "core/snapshots.hpp"

namespace isthmus::python {
namespace {

struct ErrorClass {
  isthmus_status_t status;
  const char* name;
  PyObject** base;
  const char* doc;
  PyObject** second_base = nullptr;
};

const ErrorClass k_errors[] = {
    {ISTHMUS_ERROR_INVALID_ARGUMENT, "InvalidArgumentError", &PyExc_ValueError,
     "An argument has a value that is not allowed; the message names the value and the limit."},
    {ISTHMUS_ERROR_OUT_OF_RANGE, "OutOfRangeError", &PyExc_ValueError,
     "A range exceeds a buffer, an allocation or host memory."},
    {ISTHMUS_ERROR_OUT_OF_MEMORY, "USMAllocationError", &PyExc_MemoryError,
     "No memory of that kind on that device; the message names the request and the free memory.\n"
     "`snapshot` describes how the memory of the exhausted pool was divided; None if no pool was\n"
     "involved."},
    {ISTHMUS_ERROR_UNSUPPORTED, "UnsupportedError", &PyExc_RuntimeError,
     "Not supported by this driver or device: see Device.capabilities and Device.limitations."},
    {ISTHMUS_ERROR_WRONG_CONTEXT, "WrongContextError", &PyExc_ValueError,
     "Objects of different contexts were combined, or a pointer is unknown to the context."},
    {ISTHMUS_ERROR_NOT_FOUND, "DeviceNotFoundError", &PyExc_ValueError,
     "No device or platform matches the filter; the message lists those found."},
    {ISTHMUS_ERROR_CLOSED, "ClosedError", &PyExc_ValueError,
     "The buffer was freed or the queue was closed."},
    {ISTHMUS_ERROR_READ_ONLY, "ReadOnlyError", &PyExc_BufferError,
     "A write to memory that is marked read-only.", &PyExc_ValueError},
    {ISTHMUS_ERROR_DEVICE_LOST, "DeviceLostError", &PyExc_RuntimeError,
     "The device was lost, and the contents of its memory with it."},
    {ISTHMUS_ERROR_DRIVER, "DriverError", &PyExc_RuntimeError,
     "A driver call failed; the message names the call and its code."},
    {ISTHMUS_ERROR_TIMEOUT, "WaitTimeoutError", &PyExc_TimeoutError,
     "The timeout expired. The operation continues."},
    {ISTHMUS_ERROR_DEPENDENCY, "DependencyError", &PyExc_RuntimeError,
     "An event that the operation waited for has failed, so it did not run."},
    {ISTHMUS_ERROR_ABANDONED, "AbandonedError", &PyExc_RuntimeError,
     "A host event was dropped before it was completed."},
    {ISTHMUS_ERROR_CALLBACK, "CallbackError", &PyExc_RuntimeError,
     "A function submitted to a queue did not run, a host event was completed by fail(), or a\n"
     "CustomResource returned memory that is not of its kind. An exception of a function is\n"
     "raised unchanged."},
    {ISTHMUS_ERROR_FORKED, "ForkedError", &PyExc_RuntimeError,
     "Driver work in a forked child: start the child with the multiprocessing method 'spawn'."},
    {ISTHMUS_ERROR_INTERNAL, "InternalError", &PyExc_RuntimeError,
     "A bug in Isthmus: please report it."},
    {ISTHMUS_ERROR_CONFLICT, "ConflictError", &PyExc_RuntimeError,
     "Host and device both wrote the same part of a unified buffer: see\n"
     "UnifiedBuffer.resolve()."},
    {ISTHMUS_ERROR_DEADLOCK, "DeadlockError", &PyExc_RuntimeError,
     "A function submitted to a queue would wait for its own end, for example for later work on\n"
     "its queue."},
};
constexpr std::size_t k_error_count = std::size(k_errors);

PyObject* base_error = nullptr;
std::array<PyObject*, k_error_count> error_types{};

std::string name_in(nb::handle module, const char* name) {
  return std::string{nb::cast<const char*>(module.attr("__name__"))} + "." + name;
}

nb::object make_error_type(nb::handle module, const ErrorClass& error_class) {
  nb::list bases;
  for (PyObject* const* each : {&base_error, error_class.base, error_class.second_base}) {
    if (each != nullptr) {
      bases.append(nb::handle{*each});
    }
  }
  const std::string name = name_in(module, error_class.name);
  return nb::steal(
      PyErr_NewExceptionWithDoc(name.c_str(), error_class.doc, nb::tuple(bases).ptr(), nullptr));
}

thread_local ExceptionScope* innermost = nullptr;
thread_local std::string last_message;

[[noreturn]] void raise_object(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  raise_set();
}

// Creating a snapshot runs Python code, and therefore the handlers of pending signals. Their
// exceptions propagate, with `error` as the context.
void add_snapshot(nb::handle error) {
  try {
    error.attr("snapshot") = snapshot_of_error();
  } catch (nb::python_error& failed) {
    if (failed.matches(PyExc_MemoryError) || callbacks_gate.closed()) {
      return;  // no memory for it, or the interpreter is ending: the error itself matters more
    }
    if (!nb::steal(PyException_GetContext(failed.value().ptr())).is_valid()) {
      PyException_SetContext(failed.value().ptr(), error.inc_ref().ptr());
    }
    throw;
  }
}

}  // namespace

nb::object take_exception(nb::python_error& failed, std::string& text) {
  failed.restore();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) {
    PyException_SetTraceback(value, trace);
  }
  const nb::object message_object = nb::steal(PyObject_Str(value));
  const char* chars = message_object.is_valid() ? PyUnicode_AsUTF8(message_object.ptr()) : nullptr;
  PyErr_Clear();
  text = std::string{reinterpret_cast<PyTypeObject*>(type)->tp_name} + ": " +
         (chars != nullptr ? chars : "?");
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return nb::steal(value);
}

ExceptionScope::ExceptionScope() noexcept : outer_{std::exchange(innermost, this)} {}
ExceptionScope::~ExceptionScope() { innermost = outer_; }

void ExceptionScope::raise() const {
  if (exception_.is_valid()) {
    raise_object(exception_);
  }
}

struct Carried {
  static void store(nb::object exception) {
    innermost->exception_ = std::move(exception);
    innermost->text_ = last_message;
  }
  // Raises the stored exception if its text is the library's message; otherwise makes it the cause
  // of `error`.
  static void attach(nb::handle error) {
    if (innermost == nullptr || !innermost->exception_.is_valid()) {
      return;
    }
    if (innermost->text_ == isthmus_error_message()) {
      raise_object(innermost->exception_);
    }
    PyException_SetCause(error.ptr(), innermost->exception_.release().ptr());
  }
};

const char* store_in_exception_scope(nb::python_error& failed) noexcept try {
  nb::object exception = take_exception(failed, last_message);
  if (innermost != nullptr) {
    Carried::store(std::move(exception));
  }
  return last_message.c_str();
} catch (const std::bad_alloc&) {
  return "MemoryError";
}

bool has_exception_scope() noexcept { return innermost != nullptr; }

PyObject* error_type(isthmus_status_t status) noexcept {
  for (std::size_t i = 0; i < k_error_count; ++i) {
    if (k_errors[i].status == status) {
      return error_types[i];
    }
  }
  return base_error;
}

nb::object error_object(isthmus_status_t status) {
  const char* message = isthmus_error_message();
  if (message[0] == '\0') {
    message = isthmus_status_name(status);
  }
  nb::object error = nb::steal(PyObject_CallFunction(error_type(status), "s", message));
  if (error.is_valid() && status == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    add_snapshot(error);
  }
  return error;
}

void raise_status(isthmus_status_t status) {
  nb::object error = error_object(status);
  if (error.is_valid()) {
    Carried::attach(error);
    PyErr_SetObject(error_type(status), error.ptr());
  }
  raise_set();
}

void raise_python(PyObject* type, const char* format, ...) {
  va_list values;
  va_start(values, format);
  PyErr_FormatV(type, format, values);
  va_end(values);
  raise_set();
}

void raise_set() { throw nb::python_error(); }

void raise_wrong_type(nb::handle value, const char* must_be, ...) {
  va_list values;
  va_start(values, must_be);
  const nb::object text = nb::steal(PyUnicode_FromFormatV(must_be, values));
  va_end(values);
  if (!text.is_valid()) {
    raise_set();
  }
  raise_python(PyExc_TypeError, "%U, not %.100s", text.ptr(), Py_TYPE(value.ptr())->tp_name);
}

nb::python_error take_foreign_error() {
  nb::python_error failed;
  if (!failed.matches(PyExc_Exception) || failed.matches(PyExc_MemoryError) ||
      failed.matches(base_error)) {
    throw failed;
  }
  return failed;
}

void raise_type_error(std::optional<nb::python_error>& cause, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const nb::object text = nb::steal(PyUnicode_FromFormatV(format, values));
  va_end(values);
  if (!text.is_valid()) {
    raise_set();
  }
  if (cause) {
    nb::raise_from(*cause, PyExc_TypeError, "%U", text.ptr());
  }
  raise_python(PyExc_TypeError, "%U", text.ptr());
}

void bind_errors(nb::module_& module) {
  base_error = PyErr_NewExceptionWithDoc(
      name_in(module, "Error").c_str(),
      "Base of all errors that Isthmus raises for a failed operation.", nullptr, nullptr);
  module.attr("Error") = nb::borrow(base_error);
  for (std::size_t i = 0; i < k_error_count; ++i) {
    nb::object type = make_error_type(module, k_errors[i]);
    module.attr(k_errors[i].name) = type;
    if (k_errors[i].status == ISTHMUS_ERROR_OUT_OF_MEMORY) {
      type.attr("snapshot") = nb::none();
    }
    error_types[i] = type.release().ptr();
  }
}

}  // namespace isthmus::python
