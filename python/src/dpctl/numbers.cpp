// SPDX-License-Identifier: Apache-2.0
#include "dpctl/numbers.hpp"

#include "core/arguments.hpp"
#include "core/errors.hpp"

namespace isthmus::python {

std::int64_t to_c_integer(nb::handle argument, const char* name, std::int64_t min,
                          std::int64_t max) {
  const auto* numbers = Py_TYPE(argument.ptr())->tp_as_number;
  const bool is_number =
      numbers != nullptr && (numbers->nb_int != nullptr || numbers->nb_index != nullptr);
  if (!is_number) {
    raise_wrong_type(argument, "%s must be an integer", name);
  }
  const nb::object number = steal_or_raise(PyNumber_Long(argument.ptr()));
  int overflow = 0;
  const auto value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || value < min || value > max) {
    raise_python(PyExc_OverflowError, "%s must lie in %lld..%lld, not %U", name,
                 static_cast<long long>(min), static_cast<long long>(max),
                 shown_integer(number).ptr());
  }
  return value;
}

std::int64_t to_ssize(nb::handle argument, const char* name) {
  const nb::object number = to_integer(argument, name);
  int overflow = 0;
  const auto value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    raise_python(PyExc_OverflowError, "%s of %U does not fit in 63 bits", name,
                 shown_integer(number).ptr());
  }
  return value;
}

std::size_t to_positive_size(nb::handle argument) {
  const auto nbytes = to_ssize(argument, "nbytes");
  if (nbytes <= 0) {
    raise_python(PyExc_ValueError, "the number of bytes must be positive, not %lld",
                 static_cast<long long>(nbytes));
  }
  return static_cast<std::size_t>(nbytes);
}

}  // namespace isthmus::python
