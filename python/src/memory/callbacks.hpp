// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls from the library into Python functions. The library calls these on any of its threads or
// the program's; each call takes the interpreter's lock (gil.hpp).

#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/owners.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {

// A reference to a Python object, dropped through the deferred list with the interpreter's lock
// held.
struct HeldObject final : Deferred {
  explicit HeldObject(nb::handle held) : object{nb::borrow(held)} {}
  nb::object object;
};

[[nodiscard]] inline nb::handle held_by(void* owner) noexcept {
  return static_cast<HeldObject*>(static_cast<Deferred*>(owner))->object;
}

// Calls Python for the library, on any thread. An exception propagates to the library call that
// caused this one. A Buffer that is created meanwhile comes from the driver unless the caller names
// a resource: otherwise the function of a resource could request memory from that resource.
template <class Body>
[[nodiscard]] isthmus_status_t run_callback(const char** message, Body body) noexcept {
  const CallbackLock lock;
  if (!lock) {
    *message = "a Python function was not called: the interpreter is shutting down";
    return ISTHMUS_ERROR_CALLBACK;
  }
  try {
    const DriverAllocationScope scope;
    body();
    return ISTHMUS_OK;
  } catch (nb::python_error& failed) {
    const bool no_memory = failed.matches(PyExc_MemoryError);
    *message = store_in_exception_scope(failed);
    return no_memory ? ISTHMUS_ERROR_OUT_OF_MEMORY : ISTHMUS_ERROR_CALLBACK;
  } catch (const std::bad_alloc&) {
    *message = "MemoryError";
    return ISTHMUS_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception&) {
    *message = "a call into Python failed without a Python exception";
    return ISTHMUS_ERROR_CALLBACK;
  }
}

// The same if the library cannot report an error: exceptions go to sys.unraisablehook. May be
// called while an exception is set, which is preserved.
template <class Body>
void run_callback_unraisable(nb::handle object, Body body) noexcept {
  const CallbackLock lock;
  if (!lock) {
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    const DriverAllocationScope scope;
    body();
  } catch (nb::python_error& failed) {
    failed.restore();
    PyErr_WriteUnraisable(object.ptr());
  } catch (const std::exception&) {
    PyErr_NoMemory();
    PyErr_WriteUnraisable(object.ptr());
  }
  PyErr_Restore(type, value, trace);
}

}  // namespace isthmus::python
