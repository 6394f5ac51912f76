// SPDX-License-Identifier: Apache-2.0
#pragma once
// Remembers what a signal handler raised in a wait, for callers who clear the exception.
//
// NumPy requests the buffer protocol of a Buffer, clears any error that it raises, including that
// of Ctrl-C, and reads __array_interface__ instead, all in one instruction of the calling Python
// code. If that attribute is read in the instruction that was interrupted, it raises the same
// again. State is per thread; needs the interpreter's lock.

namespace isthmus::python {

// Runs the handlers of signals that arrived. True if one has raised; its exception is set, and
// remembered for the thread's current instruction.
[[nodiscard]] bool signal_has_raised() noexcept;
void clear_interrupt() noexcept;
// Throws the remembered exception if this is still the same instruction.
void raise_saved_interrupt();

}  // namespace isthmus::python
