#pragma once
// The library's codes as Python's exceptions.

#include "common.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace isthmus::python {

// Throws the exception of `status` with the library's message of this thread.
[[noreturn]] void raise_status(isthmus_status_t status);
inline void check(isthmus_status_t status) {
  if (status != ISTHMUS_OK) [[unlikely]] {
    raise_status(status);
  }
}

// An exception that is caught: the object, with its traceback, and its type and text.
[[nodiscard]] nb::object take_exception(nb::python_error& failed, std::string& text);
// While it lives the last exception is kept that a function of Python's, which the library called
// on this thread, ended with: `raise_status` raises it where the library's message is its text, and
// else as the cause of what it raises. Of several the innermost keeps. Needs the interpreter's lock
// to be made and to go.
class carrying {
 public:
  carrying() noexcept;
  carrying(const carrying&) = delete;
  carrying& operator=(const carrying&) = delete;
  ~carrying();
  // After a call that cannot tell of a failure: raises what is kept.
  void raise() const;

 private:
  friend struct carried;
  carrying* const outer_;
  nb::object exception_;
  std::string text_;
};
// To the innermost on this thread; without one nobody gets to know of the exception. Its text lasts
// till the next one.
[[nodiscard]] const char* carry_exception(nb::python_error& failed) noexcept;
[[nodiscard]] bool is_carrying() noexcept;

// Throws `type` with a message as of PyErr_Format.
[[noreturn]] void raise_python(PyObject* type, const char* format, ...);
// Throws what is set on this thread.
[[noreturn]] void raise_set();
// What code of another library raised, which is set on this thread: no error of ours, so that the
// caller drops it or makes it the cause of its own. MemoryError, an isthmus.Error and what is no
// Exception, as KeyboardInterrupt, are thrown on.
[[nodiscard]] nb::python_error take_foreign_error();
// As raise_python, with TypeError; `cause`, if there is one, is its __cause__.
[[noreturn]] void raise_type_error(std::optional<nb::python_error>& cause, const char* format, ...);

// isthmus.Error's subclass for a code; borrowed.
[[nodiscard]] PyObject* error_type(isthmus_status_t status) noexcept;
// An exception object for a code and the library's message of this thread; it is not raised. Throws
// what a signal's handler raised meanwhile.
[[nodiscard]] nb::object error_object(isthmus_status_t status);

// For functions that the interpreter calls itself: what `body` gives, or nullptr with its exception
// set.
template <class Body>
PyObject* result_of(Body body) noexcept {
  try {
    nb::object made = body();
    return made.release().ptr();
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
