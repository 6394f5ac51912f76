// SPDX-License-Identifier: Apache-2.0
#pragma once
// Status codes of the library as Python exceptions. Needs the interpreter's lock.

#include "core/common.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace isthmus::python {

// Throws the exception of `status` with the library's message of this thread.
[[noreturn]] ISTHMUS_EXPORTED void raise_status(isthmus_status_t status);
inline void check(isthmus_status_t status) {
  if (status != ISTHMUS_OK) [[unlikely]] {
    raise_status(status);
  }
}

// Calls a function of the library that returns an object through its last argument.
template <class Handle, class Function, class... Arguments>
[[nodiscard]] Handle make_handle(Function function, Arguments... arguments) {
  Handle handle;
  check(function(arguments..., handle.out()));
  return handle;
}
// Calls a function of the library that reports properties in a structure, its last argument.
template <class Info, class Function, class... Arguments>
[[nodiscard]] Info read_info(Function function, Arguments... arguments) {
  auto info = sized<Info>();
  check(function(arguments..., &info));
  return info;
}

// Catches an exception. Returns the object, with its traceback, and stores its type and text.
[[nodiscard]] nb::object take_exception(nb::python_error& failed, std::string& text);
// While an object of this class exists, it stores the last exception that ended a Python function
// which the library called on this thread. `raise_status` raises that exception if its text is the
// library's message, and otherwise makes it the cause of the exception that it raises. If several
// objects exist, the innermost stores it. Creating and destroying one needs the interpreter's lock.
class ExceptionScope {
 public:
  ExceptionScope() noexcept;
  ExceptionScope(const ExceptionScope&) = delete;
  ExceptionScope& operator=(const ExceptionScope&) = delete;
  ~ExceptionScope();
  // Raises the stored exception. For use after a call that cannot report a failure.
  void raise() const;

 private:
  friend struct Carried;
  ExceptionScope* const outer_;
  nb::object exception_;
  std::string text_;
};
// Passes an exception to the innermost ExceptionScope on this thread; without one the exception is
// lost. Returns its text, which is valid until the next call.
[[nodiscard]] const char* store_in_exception_scope(nb::python_error& failed) noexcept;
[[nodiscard]] bool has_exception_scope() noexcept;

// Throws `type` with a message formatted as by PyErr_Format.
[[noreturn]] ISTHMUS_EXPORTED void raise_python(PyObject* type, const char* format, ...);
// Throws the exception that is set on this thread.
[[noreturn]] ISTHMUS_EXPORTED void raise_set();
// Takes the result of a function of Python's C interface. Throws the exception that is set if it
// failed.
[[nodiscard]] inline nb::object steal_or_raise(PyObject* result) {
  if (result == nullptr) {
    raise_set();
  }
  return nb::steal(result);
}
// Throws TypeError: the message, formatted as by PyErr_Format, and the type of `value`.
[[noreturn]] ISTHMUS_EXPORTED void raise_wrong_type(nb::handle value, const char* must_be, ...);
// Takes the exception that code of another library raised and that is set on this thread. It is not
// an error of Isthmus, so the caller drops it or makes it the cause of its own exception.
// MemoryError, isthmus.Error and exceptions that are not an Exception, such as KeyboardInterrupt,
// are rethrown.
[[nodiscard]] nb::python_error take_foreign_error();
// Like raise_python, with TypeError; `cause`, if there is one, becomes its __cause__.
[[noreturn]] void raise_type_error(std::optional<nb::python_error>& cause, const char* format, ...);

// The subclass of isthmus.Error for a status; borrowed.
[[nodiscard]] ISTHMUS_EXPORTED PyObject* error_type(isthmus_status_t status) noexcept;
// Creates an exception object for a status and the library's message of this thread, without
// raising it. Throws an exception that a signal handler raised meanwhile.
[[nodiscard]] nb::object error_object(isthmus_status_t status);

// For functions that the interpreter calls directly: returns what `body` returns, or nullptr with
// its exception set.
template <class Body>
PyObject* result_of(Body body) noexcept {
  try {
    nb::object result = body();
    return result.release().ptr();
  } catch (nb::python_error& failed) {
    failed.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::length_error& failed) {
    PyErr_SetString(PyExc_ValueError, failed.what());
  } catch (const std::exception& failed) {
    PyErr_SetString(PyExc_RuntimeError, failed.what());
  }
  return nullptr;
}

void bind_errors(nb::module_& module);

}  // namespace isthmus::python
