// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of the library that wait inside: for memory, or for work that uses it.

#include "errors.hpp"

namespace isthmus::python {

// While it lives, a signal whose handler raises ends such a wait of this thread: the call then
// fails and has no effect. Exceptions of Python callbacks propagate too. Created and destroyed with
// the interpreter's lock, which is released for the call.
class Interruptible {
 public:
  Interruptible() noexcept;
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();
  // To be called after the call: throws what a handler raised, else the error of `status`.
  void check(isthmus_status_t status) const;

 private:
  // The callback of isthmus_interrupt_swap.
  static int is_interrupted(void* self, const char** message) noexcept;

  const ExceptionScope exceptions_;
  const isthmus_interrupt_t outer_;
  nb::object type_;  // of the raised exception; not valid if there is none
  nb::object value_;
  nb::object trace_;
};

}  // namespace isthmus::python
