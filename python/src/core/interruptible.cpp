// SPDX-License-Identifier: Apache-2.0
#include "core/interruptible.hpp"

#include "core/gil.hpp"
#include "core/interrupts.hpp"

namespace isthmus::python {

Interruptible::Interruptible() noexcept
    : outer_{isthmus_interrupt_swap({&Interruptible::is_interrupted, this})} {}

Interruptible::~Interruptible() { isthmus_interrupt_swap(outer_); }

// After an interrupt, all further waits of the library call end at once.
int Interruptible::is_interrupted(void* self, const char** message) noexcept {
  auto& call = *static_cast<Interruptible*>(self);
  const CallbackLock lock;
  if (!lock) {
    return 0;  // the interpreter is ending
  }
  if (!call.type_.is_valid() && signal_has_raised()) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    call.type_ = nb::steal(type);
    call.value_ = nb::steal(value);
    call.trace_ = nb::steal(trace);
  }
  *message = "a signal handler raised an exception";
  return call.type_.is_valid() ? 1 : 0;
}

void Interruptible::check(isthmus_status_t status) const {
  if (type_.is_valid()) {
    PyErr_Restore(nb::object{type_}.release().ptr(), nb::object{value_}.release().ptr(),
                  nb::object{trace_}.release().ptr());
    raise_set();
  }
  python::check(status);
}

}  // namespace isthmus::python
