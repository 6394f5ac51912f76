// SPDX-License-Identifier: Apache-2.0
#pragma once
// Remembers the exception that a signal handler raised during a wait, for callers that clear it.
//
// NumPy requests the buffer protocol of a Buffer, clears any error that it raises, including that
// of Ctrl-C, and reads __array_interface__ instead, all in one instruction of the calling Python
// code. If that attribute is read in the instruction that was interrupted, it raises the same
// exception again. State is per thread; needs the interpreter's lock.

namespace isthmus::python {

// Runs the handlers of pending signals. Returns true if one raised an exception, which is then set,
// and remembered for the thread's current instruction.
[[nodiscard]] bool signal_has_raised() noexcept;
void clear_interrupt() noexcept;
// Throws the remembered exception if the thread still executes that instruction.
void raise_saved_interrupt();

// Whether this thread runs a function that was submitted to a queue. It is a library thread, where
// no signals are handled.
extern thread_local constinit bool is_in_function;

}  // namespace isthmus::python
