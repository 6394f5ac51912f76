// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keyword arguments of vectorcalls, parsed without a tuple and a dictionary. Needs the
// interpreter's lock.

#include <span>

#include "core/errors.hpp"

namespace isthmus::python {

// A keyword and the member of a request that it sets.
template <class Request>
struct Keyword {
  Keyword(const char* text, nb::handle Request::*request_member)
      : name{PyUnicode_InternFromString(text)}, member{request_member} {}

  PyObject* name;  // interned, never released
  nb::handle Request::*member;
};

// Returns null if no keyword has that name. TypeError if the name is not a str.
template <class Request>
[[nodiscard]] nb::handle Request::*find_keyword(std::span<const Keyword<Request>> keywords,
                                                PyObject* name) {
  for (const auto& each : keywords) {  // names written in a program are interned too
    if (each.name == name) {
      return each.member;
    }
  }
  if (PyUnicode_Check(name) == 0) {
    raise_python(PyExc_TypeError, "keywords must be strings, not %R", name);
  }
  for (const auto& each : keywords) {
    if (PyUnicode_Compare(each.name, name) == 0) {
      return each.member;
    }
  }
  return nullptr;
}

}  // namespace isthmus::python
