#include "memory_arguments.hpp"

#include <array>

#include "errors.hpp"

namespace isthmus::python {
namespace {

struct keyword {
  PyObject* name;  // interned
  nb::handle memory_arguments::*where;
};
using keyword_list = std::array<keyword, 4>;

// Those first that are given most. Made with the first call, with the interpreter's lock.
const keyword_list& keywords() {
  static const auto* const all = new keyword_list{
      keyword{PyUnicode_InternFromString("queue"), &memory_arguments::queue},
      keyword{PyUnicode_InternFromString("alignment"), &memory_arguments::alignment},
      keyword{PyUnicode_InternFromString("copy"), &memory_arguments::copy},
      keyword{PyUnicode_InternFromString("other"), &memory_arguments::other}};
  return *all;
}

// Names written in a program are interned too.
void set_keyword(memory_arguments& into, PyObject* name, PyObject* value) {
  if (PyUnicode_Check(name) == 0) {
    raise_python(PyExc_TypeError, "keywords must be strings, not %R", name);
  }
  for (const bool by_text : {false, true}) {
    for (const auto& each : keywords()) {
      if (by_text ? PyUnicode_Compare(each.name, name) == 0 : each.name == name) {
        if (each.where == &memory_arguments::other && into.other.is_valid()) {
          raise_python(PyExc_TypeError, "got other twice");
        }
        into.*each.where = value;
        return;
      }
    }
  }
  raise_python(
      PyExc_TypeError,
      "got an unexpected keyword argument '%U': there are other, alignment, queue and copy", name);
}

void set_positional(memory_arguments& into, PyObject* const* arguments, std::size_t count) {
  if (count > 1) {
    raise_python(PyExc_TypeError, "takes one positional argument, not %zu: name the others", count);
  }
  if (count == 1) {
    into.other = arguments[0];
  }
}

memory_arguments complete(const memory_arguments& read) {
  if (!read.other.is_valid()) {
    raise_python(PyExc_TypeError, "needs a number of bytes or an object with USM memory");
  }
  return read;
}

}  // namespace

memory_arguments read_memory_arguments(PyObject* const* arguments, std::size_t count,
                                       PyObject* names) {
  const auto unnamed = static_cast<std::size_t>(PyVectorcall_NARGS(count));
  memory_arguments read;
  set_positional(read, arguments, unnamed);
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    set_keyword(read, PyTuple_GET_ITEM(names, i), arguments[unnamed + static_cast<std::size_t>(i)]);
  }
  return complete(read);
}

memory_arguments read_memory_arguments(PyObject* arguments, PyObject* named) {
  memory_arguments read;
  set_positional(read, &PyTuple_GET_ITEM(arguments, 0),
                 static_cast<std::size_t>(PyTuple_GET_SIZE(arguments)));
  PyObject *name, *value;
  for (Py_ssize_t at = 0; named != nullptr && PyDict_Next(named, &at, &name, &value) != 0;) {
    set_keyword(read, name, value);
  }
  return complete(read);
}

}  // namespace isthmus::python
