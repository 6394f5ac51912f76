// SPDX-License-Identifier: Apache-2.0
#include "core/caller_warning.hpp"

#include <algorithm>
#include <string_view>

#include "core/errors.hpp"

namespace isthmus::python {
namespace {

constexpr std::string_view k_libraries[] = {"isthmus", "numpy", "torch"};

bool is_of_library(nb::handle frame) {
  const nb::object name = frame.attr("f_globals").attr("get")("__name__", "");
  if (!nb::isinstance<nb::str>(name)) {
    return false;
  }
  const std::string_view module = nb::cast<const char*>(name);
  return std::ranges::find(k_libraries, module.substr(0, module.find('.'))) !=
         std::end(k_libraries);
}

// The stack level of the caller: 1 is the innermost frame of Python code.
Py_ssize_t frames_to_caller() {
  Py_ssize_t level = 1;
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none() && is_of_library(frame)) {
    ++level;
    frame = frame.attr("f_back");
  }
  return level;
}

}  // namespace

void warn_caller(nb::handle category, const char* text) {
  if (PyErr_WarnEx(category.ptr(), text, frames_to_caller()) != 0) {
    raise_set();
  }
}

}  // namespace isthmus::python
