#pragma once
// Calls of the library that wait inside: for memory, or for what uses it.

#include "errors.hpp"

namespace isthmus::python {

// While it lives, a signal whose handler raises ends such a wait of this thread's: the call fails
// as if it had not been made. Exceptions of Python callbacks are propagated too. Made and dropped
// with the interpreter's lock, which is released for the call.
class interruptible {
 public:
  interruptible() noexcept;
  interruptible(const interruptible&) = delete;
  interruptible& operator=(const interruptible&) = delete;
  ~interruptible();
  // After the call: throws what a handler raised, else the error of `status`.
  void check(isthmus_status_t status) const;

 private:
  // For isthmus_interrupt_swap.
  static int is_interrupted(void* self, const char** message) noexcept;

  const carrying exceptions_;
  const isthmus_interrupt_t outer_;
  nb::object type_;  // of what was raised; not valid: nothing was
  nb::object value_;
  nb::object trace_;
};

}  // namespace isthmus::python
