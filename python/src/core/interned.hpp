// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strings that are often compared or looked up, interned when the module is imported and never
// released: among them the names of the kinds of memory. Needs the interpreter's lock.

#include "core/common.hpp"

namespace isthmus::python {

struct InternedNames {
  PyObject *device, *shared, *host, *unknown;
  PyObject *data, *shape, *syclobj;
};
extern ISTHMUS_EXPORTED InternedNames interned;
// Called once, before any use.
void intern_names();

// The interned name of a kind, as a borrowed reference.
[[nodiscard]] ISTHMUS_EXPORTED nb::handle kind_name(isthmus_kind_t kind) noexcept;

}  // namespace isthmus::python
