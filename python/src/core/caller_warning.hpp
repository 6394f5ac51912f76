// SPDX-License-Identifier: Apache-2.0
#pragma once
// Warnings that name the caller's line. Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

// Issues the warning at the innermost line outside of Isthmus and of the libraries whose Python
// functions call its protocols. With Python's default filter, each such line is reported once per
// text. Throws the warning if a filter makes it an error.
void warn_caller(nb::handle category, const char* text);

}  // namespace isthmus::python
