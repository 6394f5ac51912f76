// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of bytes as Python passes them. Needs the interpreter's lock.

#include "core/arguments.hpp"

namespace isthmus::python {

// The general case of to_bytes.
[[nodiscard]] ISTHMUS_EXPORTED std::size_t convert_to_bytes(nb::handle value, const char* name,
                                                            nb::handle device, isthmus_kind_t kind);

// Converts an integer as to_size does, a float that is a whole number, or text: "64MiB", "1.5 GB",
// or "80%" of the total memory of `kind` that `device` (a Device, or not valid) has. ValueError for
// other text, TypeError for other objects. For an int it costs what to_size does.
[[nodiscard]] inline std::size_t to_bytes(nb::handle value, const char* name,
                                          nb::handle device = {},
                                          isthmus_kind_t kind = ISTHMUS_KIND_UNKNOWN) {
  return PyLong_CheckExact(value.ptr()) ? to_size(value, name)
                                        : convert_to_bytes(value, name, device, kind);
}
// The same, but returns `default_bytes` for None.
[[nodiscard]] inline std::size_t to_bytes_or(nb::handle value, const char* name,
                                             std::size_t default_bytes) {
  return value.is_none() ? default_bytes : to_bytes(value, name);
}

}  // namespace isthmus::python
