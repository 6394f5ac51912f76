#pragma once
// Keyword arguments of calls that come without a tuple and a dictionary.

#include <span>

#include "errors.hpp"

namespace isthmus::python {

// The member of a request that a keyword sets.
template <class Request>
struct keyword {
  keyword(const char* text, nb::handle Request::*member)
      : name{PyUnicode_InternFromString(text)}, where{member} {}

  PyObject* name;  // interned, for ever
  nb::handle Request::*where;
};

// Null: none of that name. TypeError for what is no name.
template <class Request>
[[nodiscard]] nb::handle Request::*find_keyword(std::span<const keyword<Request>> known,
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
