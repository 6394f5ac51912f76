// SPDX-License-Identifier: Apache-2.0
#include "core/interrupts.hpp"

#include "core/common.hpp"
#include "core/errors.hpp"

namespace isthmus::python {
namespace {

// Compared, never dereferenced.
struct Instruction {
  const PyFrameObject* frame = nullptr;
  long offset = -1;

  [[nodiscard]] static Instruction current() noexcept {
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame == nullptr) {
      return {};
    }
    const nb::object offset =
        nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_lasti"));
    if (!offset.is_valid()) {
      PyErr_Clear();
      return {};
    }
    return {frame, PyLong_AsLong(offset.ptr())};
  }
  [[nodiscard]] bool same_as(const Instruction& other) const noexcept {
    return frame != nullptr && frame == other.frame && offset == other.offset;
  }
};

// Stores type and arguments instead of the exception, whose traceback would keep buffers alive. An
// exception that is stored when the thread ends is leaked, since the thread then has no interpreter
// to release it.
struct Interrupt {
  Instruction instruction;
  PyObject* type = nullptr;
  PyObject* arguments = nullptr;
};
thread_local constinit Interrupt last;

}  // namespace

thread_local constinit bool is_in_function = false;

void clear_interrupt() noexcept {
  Py_CLEAR(last.type);
  Py_CLEAR(last.arguments);
}

bool signal_has_raised() noexcept {
  if (PyErr_CheckSignals() == 0) {
    return false;
  }
  clear_interrupt();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  last.instruction = Instruction::current();
  last.arguments = PyObject_GetAttrString(value, "args");
  PyErr_Clear();
  last.type = Py_NewRef(type);
  PyErr_Restore(type, value, traceback);
  return true;
}

void raise_saved_interrupt() {
  if (last.type == nullptr || !last.instruction.same_as(Instruction::current())) {
    return;
  }
  PyErr_SetObject(last.type, last.arguments);
  clear_interrupt();
  raise_set();
}

}  // namespace isthmus::python
