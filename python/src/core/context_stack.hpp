// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stack in a context variable: the entries of the `with` statements of a thread or asyncio task,
// with the innermost on top. Needs the interpreter's lock.
//
// The variable holds (entry, the stack below) or None. Leaving restores the stack below. An entry
// does not store its position, so threads, tasks and copied contexts may enter and leave the same
// object.

#include "core/errors.hpp"

namespace isthmus::python {

class ContextStack {
 public:
  // Called once, before any use.
  void create(const char* name) {
    variable_ = PyContextVar_New(name, Py_None);
    if (variable_ == nullptr) {
      raise_set();
    }
  }

  [[nodiscard]] nb::object all() const {
    PyObject* stack = nullptr;
    if (PyContextVar_Get(variable_, nullptr, &stack) != 0) {
      raise_set();
    }
    return nb::steal(stack);
  }
  // None if it is empty.
  [[nodiscard]] nb::object top() const {
    const nb::object stack = all();
    return stack.is_none() ? stack : nb::borrow(top_of(stack));
  }
  // For a stack that is not empty. The result is borrowed from the stack.
  [[nodiscard]] static nb::handle top_of(nb::handle stack) noexcept {
    return PyTuple_GET_ITEM(stack.ptr(), 0);
  }
  [[nodiscard]] static nb::handle below(nb::handle stack) noexcept {
    return PyTuple_GET_ITEM(stack.ptr(), 1);
  }

  void push(nb::handle entry) { set(nb::make_tuple(nb::borrow(entry), all())); }
  // RuntimeError if the entry is not on top; `name` names this kind of entry.
  void pop(nb::handle entry, const char* name) {
    const nb::object stack = all();
    if (stack.is_none() || !top_of(stack).is(entry)) {
      raise_python(PyExc_RuntimeError,
                   "%R is not the innermost one: exit %s in reverse order, in the thread or task "
                   "that entered them",
                   entry.ptr(), name);
    }
    set(below(stack));
  }
  void set(nb::handle stack) {
    PyObject* token = PyContextVar_Set(variable_, stack.ptr());
    if (token == nullptr) {
      raise_set();
    }
    Py_DECREF(token);
  }

 private:
  PyObject* variable_ = nullptr;  // lives as long as the module
};

}  // namespace isthmus::python
