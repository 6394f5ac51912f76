// SPDX-License-Identifier: Apache-2.0
#include "core/arguments.hpp"

#include <cmath>

#include "core/errors.hpp"
#include "core/interned.hpp"

namespace isthmus::python {

bool is_integral(nb::handle value) {
  static PyObject* const abstract =
      nb::object(nb::module_::import_("numbers").attr("Integral")).release().ptr();
  return PyLong_Check(value.ptr()) != 0 || nb::isinstance(value, nb::handle(abstract));
}

// An exact int is returned as is; instances of subclasses are converted.
nb::object as_integer(nb::handle value, std::optional<nb::python_error>* cause) {
  if (PyLong_CheckExact(value.ptr()) != 0) {
    return nb::borrow(value);
  }
  if (PyIndex_Check(value.ptr()) == 0) {
    return {};
  }
  nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) {
    auto failed = take_foreign_error();
    if (cause != nullptr) {
      cause->emplace(std::move(failed));
    }
  }
  return index;
}

nb::object to_integer(nb::handle value, const char* name) {
  std::optional<nb::python_error> cause;
  nb::object index = as_integer(value, &cause);
  if (!index.is_valid()) {
    raise_type_error(cause, "%s must be an integer, not %.100s", name,
                     Py_TYPE(value.ptr())->tp_name);
  }
  return index;
}

namespace {

// A bound of the slice as None or a Python int, for which PySlice_Unpack runs no Python code.
nb::object slice_bound(nb::handle slice, const char* name) {
  nb::object bound = slice.attr(name);
  if (bound.is_none()) {
    return bound;
  }
  std::optional<nb::python_error> cause;
  nb::object index = as_integer(bound, &cause);
  if (!index.is_valid()) {
    raise_type_error(cause, "slice indices must be integers or None, not %.100s",
                     Py_TYPE(bound.ptr())->tp_name);
  }
  return index;
}

[[noreturn]] void raise_overflow(nb::handle integer, const char* name) {
  raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE), "%s of %U does not fit in 63 bits", name,
               shown_integer(integer).ptr());
}

[[noreturn]] void raise_bad_alignment(nb::handle integer) {
  raise_python(error_type(ISTHMUS_ERROR_INVALID_ARGUMENT),
               "alignment %U is not a power of two up to the device's max_alignment, nor 0 for the "
               "device's default",
               shown_integer(integer).ptr());
}

}  // namespace

SliceBounds to_slice(nb::handle slice) {
  const nb::object start = slice_bound(slice, "start");
  const nb::object stop = slice_bound(slice, "stop");
  const nb::object step = slice_bound(slice, "step");
  const nb::object slice_object = nb::steal(PySlice_New(start.ptr(), stop.ptr(), step.ptr()));
  SliceBounds bounds;
  if (!slice_object.is_valid() ||
      PySlice_Unpack(slice_object.ptr(), &bounds.start, &bounds.stop, &bounds.step) != 0) {
    raise_set();
  }
  return bounds;
}

nb::object shown_integer(nb::handle integer) {
  const nb::object bits = nb::steal(PyObject_CallMethod(integer.ptr(), "bit_length", nullptr));
  constexpr long k_shown = 128;
  const bool is_long = bits.is_valid() && PyLong_AsLong(bits.ptr()) > k_shown;
  PyErr_Clear();
  return steal_or_raise(is_long ? PyUnicode_FromFormat("an integer of %S bits", bits.ptr())
                                : PyObject_Repr(integer.ptr()));
}

void require_text(nb::handle value, const char* name) {
  if (PyUnicode_Check(value.ptr()) == 0) {
    raise_wrong_type(value, "%s must be a str", name);
  }
}

const char* utf8_of(nb::handle text) {
  const char* const chars = PyUnicode_AsUTF8(text.ptr());
  if (chars == nullptr) {
    raise_set();
  }
  return chars;
}

nb::object to_tuple_of(nb::handle argument, const char* must_be,
                       std::optional<nb::python_error> cause) {
  nb::object all = nb::steal(PySequence_Tuple(argument.ptr()));
  if (!all.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
      raise_set();
    }
    PyErr_Clear();
    raise_type_error(cause, "%s, not %R", must_be, argument.ptr());
  }
  return all;
}

std::int64_t to_int64(nb::handle value, const char* name) {
  const nb::object index = to_integer(value, name);
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    raise_overflow(index, name);
  }
  return number;
}

std::size_t to_size(nb::handle value, const char* name) {
  if (!PyLong_CheckExact(value.ptr())) {
    return to_size(to_integer(value, name), name);
  }
  int overflow = 0;
  const long long size = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow > 0) {
    raise_overflow(value, name);
  }
  if (overflow < 0 || size < 0) {
    raise_python(PyExc_ValueError, "%s must be 0 or more, not %U", name,
                 shown_integer(value).ptr());
  }
  return static_cast<std::size_t>(size);
}

std::size_t to_size_or(nb::handle value, const char* name, std::size_t default_size) {
  return value.is_none() ? default_size : to_size(value, name);
}

std::size_t to_alignment(nb::handle value) {
  if (!value.is_valid() || value.is_none()) {
    return 0;
  }
  if (!PyLong_CheckExact(value.ptr())) {
    return to_alignment(to_integer(value, "alignment"));
  }
  int overflow = 0;
  const long long alignment = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow > 0) {
    raise_bad_alignment(value);
  }
  return overflow < 0 || alignment < 0 ? 0 : static_cast<std::size_t>(alignment);
}

std::size_t to_exact_alignment(nb::handle value) {
  if (!value.is_valid() || value.is_none()) {
    return 0;
  }
  int overflow = 0;
  const nb::object index = to_integer(value, "alignment");
  const long long alignment = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || alignment < 0) {
    raise_bad_alignment(index);
  }
  return static_cast<std::size_t>(alignment);
}

bool is_true(nb::handle value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) {
    raise_set();
  }
  return truth != 0;
}

bool to_flag(nb::handle value, const char* name) {
  if (!PyBool_Check(value.ptr())) {
    raise_python(PyExc_TypeError, "%s must be True or False, not %R", name, value.ptr());
  }
  return value.is(Py_True);
}

void* to_pointer(nb::handle value, const char* name) {
  const nb::object index = to_integer(value, name);
  void* pointer = PyLong_AsVoidPtr(index.ptr());
  int overflow = 0;
  const bool negative = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) < 0 && overflow == 0;
  if (PyErr_Occurred() != nullptr || overflow < 0 || negative) {
    PyErr_Clear();
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "%s of %U is not an address: it must lie in 0..2**64-1", name,
                 shown_integer(index).ptr());
  }
  return pointer;
}

// String literals of Python programs are interned, so comparing pointers usually suffices.
isthmus_kind_t to_kind(nb::handle value) {
  const auto* text = value.ptr();
  if (text == interned.device) return ISTHMUS_KIND_DEVICE;
  if (text == interned.host) return ISTHMUS_KIND_HOST;
  if (text == interned.shared) return ISTHMUS_KIND_SHARED;
  if (PyUnicode_Check(value.ptr()) == 0) {
    raise_python(PyExc_TypeError, "kind must be 'device', 'shared' or 'host', not %R", value.ptr());
  }
  for (const isthmus_kind_t kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    if (PyUnicode_Compare(value.ptr(), kind_name(kind).ptr()) == 0) {
      return kind;
    }
  }
  raise_python(PyExc_ValueError, "kind must be 'device', 'shared' or 'host', not %R", value.ptr());
}

double to_seconds(nb::handle value, const char* name) {
  const double seconds = PyFloat_AsDouble(value.ptr());
  if (seconds != -1.0 || PyErr_Occurred() == nullptr) {
    return seconds;
  }
  std::optional<nb::python_error> cause{take_foreign_error()};
  if (PyLong_CheckExact(value.ptr())) {
    const bool is_negative = nb::handle(value) < nb::int_(0);
    return is_negative ? -HUGE_VAL : HUGE_VAL;
  }
  raise_type_error(cause, "%s must be a real number of seconds, not %.100s", name,
                   Py_TYPE(value.ptr())->tp_name);
}

std::int64_t to_nanoseconds(nb::handle seconds, const char* name) {
  const double count = to_seconds(seconds, name);
  if (std::isnan(count) || count < 0) {
    raise_python(PyExc_ValueError, "%s must be 0 seconds or more, not %R", name, seconds.ptr());
  }
  constexpr double k_longest = 9.2e9;  // seconds that fit in 63 bits of nanoseconds
  return count > k_longest ? k_infinite : static_cast<std::int64_t>(count * 1e9);
}

std::int64_t to_timeout(nb::handle seconds) {
  const auto nanoseconds = seconds.is_none() ? k_infinite : to_nanoseconds(seconds, "timeout");
  return nanoseconds == k_infinite ? -1 : nanoseconds;
}

}  // namespace isthmus::python
