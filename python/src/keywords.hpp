// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keyword arguments of vectorcalls, parsed without a tuple and a dictionary. Needs the
// interpreter's lock.

#include <span>

#include "errors.hpp"

namespace isthmus::python {

// A keyword and the member of a request that it sets.
template <class Request>
struct Keyword {
  Keyword(const char* text, nb::handle Request::*member)
      : name{PyUnicode_InternFromString(text)}, where{member} {}

  PyObject* name;  // interned, never released
  nb::handle Request::*where;
};

// Null if there is none of that name. TypeError if it is not a str.
template <class Request>
[[nodiscard]] nb::handle Request::*find_keyword(std::span<const Keyword<Request>> known,
                                                PyObject* name) {
  for (const auto& each : known) {  // names written in a program are interned too
    if (each.name == name) {
      return each.where;
    }
  }
  if (PyUnicode_Check(name) == 0) {
    raise_python(PyExc_TypeError, "keywords must be strings, not %R", name);
  }
  for (const auto& each : known) {
    if (PyUnicode_Compare(each.name, name) == 0) {
      return each.where;
    }
  }
  return nullptr;
}

}  // namespace isthmus::python
