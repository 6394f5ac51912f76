// SPDX-License-Identifier: Apache-2.0
#include "interop/usm_arguments.hpp"

#include <array>

#include "core/keywords.hpp"

namespace isthmus::python {
namespace {

// The keywords, the most frequent ones first. Created by the first call, with the interpreter's
// lock.
std::span<const Keyword<MemoryArguments>> keywords() {
  static const std::array<Keyword<MemoryArguments>, 4> all{
      {{"queue", &MemoryArguments::queue},
       {"alignment", &MemoryArguments::alignment},
       {"copy", &MemoryArguments::copy},
       {"other", &MemoryArguments::other}}};
  return all;
}

void set_keyword(MemoryArguments& out, PyObject* name, PyObject* value) {
  const auto member = find_keyword(keywords(), name);
  if (member == nullptr) {
    raise_python(PyExc_TypeError,
                 "unexpected keyword argument '%U': use other, alignment, queue and copy", name);
  }
  if (member == &MemoryArguments::other && out.other.is_valid()) {
    raise_python(PyExc_TypeError, "argument 'other' was passed twice: by position and by keyword");
  }
  out.*member = value;
}

void set_positional(MemoryArguments& out, PyObject* const* arguments, std::size_t count) {
  if (count > 1) {
    raise_python(PyExc_TypeError,
                 "at most one positional argument is allowed, not %zu: pass the others by keyword",
                 count);
  }
  if (count == 1) {
    out.other = arguments[0];
  }
}

MemoryArguments complete(const MemoryArguments& read) {
  if (!read.other.is_valid()) {
    raise_python(PyExc_TypeError,
                 "missing argument 'other': pass a number of bytes or an object with USM memory");
  }
  return read;
}

}  // namespace

MemoryArguments read_memory_arguments(PyObject* const* arguments, std::size_t count,
                                      PyObject* names) {
  const auto unnamed = static_cast<std::size_t>(PyVectorcall_NARGS(count));
  MemoryArguments read;
  set_positional(read, arguments, unnamed);
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    set_keyword(read, PyTuple_GET_ITEM(names, i), arguments[unnamed + static_cast<std::size_t>(i)]);
  }
  return complete(read);
}

MemoryArguments read_memory_arguments(PyObject* arguments, PyObject* named) {
  MemoryArguments read;
  set_positional(read, &PyTuple_GET_ITEM(arguments, 0),
                 static_cast<std::size_t>(PyTuple_GET_SIZE(arguments)));
  PyObject *name, *value;
  for (Py_ssize_t position = 0;
       named != nullptr && PyDict_Next(named, &position, &name, &value) != 0;) {
    set_keyword(read, name, value);
  }
  return complete(read);
}

}  // namespace isthmus::python
