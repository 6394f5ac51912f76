// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lets Ctrl-C interrupt library calls that wait: for memory, or for work that uses it.

#include "core/errors.hpp"
#include "core/gil.hpp"

namespace isthmus::python {

// While an object of this class exists, a signal whose handler raises an exception ends such a wait
// of this thread: the library call then fails and has no effect. Exceptions of Python callbacks
// propagate too. Created and destroyed with the interpreter's lock, which is released for the call.
class Interruptible {
 public:
  ISTHMUS_EXPORTED Interruptible() noexcept;
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ISTHMUS_EXPORTED ~Interruptible();
  // To be called after the library call: throws the exception that a handler raised, else the error
  // of `status`.
  ISTHMUS_EXPORTED void check(isthmus_status_t status) const;

 private:
  // The callback of isthmus_interrupt_swap.
  static int is_interrupted(void* self, const char** message) noexcept;

  const ExceptionScope exceptions_;
  const isthmus_interrupt_t outer_;
  nb::object type_;  // of the raised exception; not valid if there is none
  nb::object value_;
  nb::object trace_;
};

// Makes such a call, with the interpreter's lock released, and throws its errors.
template <class Call>
void call_interruptibly(Call call) {
  const Interruptible interruptible;
  interruptible.check(without_lock(call));
}

}  // namespace isthmus::python
