#pragma once
// What a signal handler raised in a wait, for callers who clear it.
//
// NumPy asks a Buffer for the buffer protocol, clears whatever error that gives, Ctrl-C's too, and
// asks for __array_interface__ instead: all in one instruction of the Python code that called it.
// Where that is asked for in the instruction that was interrupted, it raises the same again.

namespace isthmus::python {

// Runs the handlers of signals that came. True: one has raised. Its error is set, and remembered
// for the thread's current instruction.
[[nodiscard]] bool signal_has_raised() noexcept;
void forget_interrupt() noexcept;
// Throws what was remembered in this very instruction.
void raise_remembered_interrupt();

}  // namespace isthmus::python
