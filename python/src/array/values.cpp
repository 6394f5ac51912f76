// SPDX-License-Identifier: Apache-2.0
#include "array/values.hpp"

#include <isthmus/float16.hpp>

#include <array>
#include <cstring>

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "interop/numpy_items.hpp"

namespace isthmus::python {
namespace {

template <class T>
T load(const void* source) noexcept {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <class T>
ElementValue make_value(T number, const ElementType& type) {
  ElementValue value{};
  std::memcpy(value.bytes, &number, sizeof number);
  value.type = &type;
  return value;
}

[[noreturn]] void raise_overflow(nb::handle value, const ElementType& type) {
  raise_python(PyExc_OverflowError, "%U does not fit in %s", shown_integer(value).ptr(), type.name);
}
[[noreturn]] void raise_not_convertible(nb::handle value, const ElementType& type) {
  raise_python(PyExc_TypeError, "%R cannot be converted to an element of %s", value.ptr(),
               type.name);
}

// -- to elements ----------------------------------------------------------------------------------

ElementValue exact_integer_value(nb::handle integer, const ElementType& out) {
  const int unused = 64 - out.item * 8;
  if (out.kind == 'u') {
    const auto number = PyLong_AsUnsignedLongLong(integer.ptr());
    if (PyErr_Occurred() != nullptr || number > UINT64_MAX >> unused) {
      PyErr_Clear();
      raise_overflow(integer, out);
    }
    return make_value(number, out);
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow != 0 || number > INT64_MAX >> unused || number < INT64_MIN >> unused) {
    raise_overflow(integer, out);
  }
  return make_value(number, out);
}

bool is_long_double(const ElementType& type) noexcept {
  return type.dtype == ISTHMUS_LONGDOUBLE || type.dtype == ISTHMUS_CLONGDOUBLE;
}

ElementValue integer_value(nb::handle integer, const ElementType& out) {
  if (out.kind == 'i' || out.kind == 'u') {
    return exact_integer_value(integer, out);
  }
  if (out.kind == 'b') {
    return make_value(is_true(integer), out);
  }
  // A long double holds all bits of an int64, a double does not.
  int overflow = 0;
  const long long exact = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0 && is_long_double(out)) {
    return make_value(exact, element_type(ISTHMUS_INT64));
  }
  const double number = PyLong_AsDouble(integer.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise_overflow(integer, out);
  }
  return make_value(number, element_type(ISTHMUS_FLOAT64));
}

// int() rejects NaN and infinity.
ElementValue float_value(nb::handle number, const ElementType& out, isthmus_casting_t casting) {
  const bool is_lossy = out.kind == 'i' || out.kind == 'u' || out.kind == 'b';
  if (is_lossy && casting != ISTHMUS_CASTING_UNSAFE) {
    raise_not_convertible(number, out);
  }
  if (out.kind == 'i' || out.kind == 'u') {
    const nb::object integer = steal_or_raise(PyLong_FromDouble(PyFloat_AS_DOUBLE(number.ptr())));
    return exact_integer_value(integer, out);
  }
  const double value = PyFloat_AS_DOUBLE(number.ptr());
  return out.kind == 'b' ? make_value(value != 0, out)
                         : make_value(value, element_type(ISTHMUS_FLOAT64));
}

ElementValue complex_value(nb::handle number, const ElementType& out, isthmus_casting_t casting) {
  const Py_complex value = PyComplex_AsCComplex(number.ptr());
  if (out.kind == 'b' && casting == ISTHMUS_CASTING_UNSAFE) {
    return make_value(value.real != 0 || value.imag != 0, element_type(ISTHMUS_BOOL));
  }
  if (out.kind != 'c') {
    raise_not_convertible(number, out);
  }
  return make_value(value, element_type(ISTHMUS_COMPLEX128));
}

// std::nullopt for text, dates and records.
std::optional<ElementValue> numpy_value(nb::handle number, const ElementType& out,
                                        isthmus_casting_t casting) {
  const auto* type = find_numpy_type(nb::object(number.attr("dtype")));
  if (type == nullptr) {
    return {};
  }
  if (isthmus_can_cast(type->dtype, out.dtype, casting) == 0) {
    raise_not_convertible(number, out);
  }
  const nb::object bytes = number.attr("tobytes")();
  ElementValue value{};
  std::memcpy(value.bytes, PyBytes_AsString(bytes.ptr()), type->item);
  value.type = type;
  return value;
}

// -- from elements --------------------------------------------------------------------------------

PyObject* load_integer(const void* source, const ElementType& type) {
  const bool is_signed = type.kind == 'i';
  switch (type.item) {
    case 1:
      return PyLong_FromLong(is_signed ? load<std::int8_t>(source) : load<std::uint8_t>(source));
    case 2:
      return PyLong_FromLong(is_signed ? load<std::int16_t>(source) : load<std::uint16_t>(source));
    case 4:
      return is_signed ? PyLong_FromLong(load<std::int32_t>(source))
                       : PyLong_FromUnsignedLong(load<std::uint32_t>(source));
    default:
      return is_signed ? PyLong_FromLongLong(load<std::int64_t>(source))
                       : PyLong_FromUnsignedLongLong(load<std::uint64_t>(source));
  }
}

PyObject* numpy_number(const void* source, const ElementType& type) {
  const nb::object bytes =
      nb::steal(PyBytes_FromStringAndSize(static_cast<const char*>(source), type.item));
  const auto array = nb::module_::import_("numpy").attr("frombuffer")(bytes, dtype_of(type));
  return nb::object(array[0]).release().ptr();
}

PyObject* number_of(const void* source, const ElementType& type) {
  switch (type.dtype) {
    case ISTHMUS_BOOL: return PyBool_FromLong(load<std::uint8_t>(source));
    case ISTHMUS_FLOAT16: return PyFloat_FromDouble(static_cast<double>(load<float16>(source)));
    case ISTHMUS_BFLOAT16: return PyFloat_FromDouble(static_cast<double>(load<bfloat16>(source)));
    case ISTHMUS_FLOAT32: return PyFloat_FromDouble(static_cast<double>(load<float>(source)));
    case ISTHMUS_FLOAT64: return PyFloat_FromDouble(load<double>(source));
    case ISTHMUS_COMPLEX64: {
      const auto components = load<std::array<float, 2>>(source);
      return PyComplex_FromDoubles(static_cast<double>(components[0]),
                                   static_cast<double>(components[1]));
    }
    case ISTHMUS_COMPLEX128: {
      const auto components = load<std::array<double, 2>>(source);
      return PyComplex_FromDoubles(components[0], components[1]);
    }
    case ISTHMUS_LONGDOUBLE:
    case ISTHMUS_CLONGDOUBLE: return numpy_number(source, type);
    default: return load_integer(source, type);
  }
}

}  // namespace

nb::object to_number(const void* element, const ElementType& type) {
  return steal_or_raise(number_of(element, type));
}

void require_castable(nb::handle number, const ElementType& out, isthmus_casting_t casting) {
  if (casting == ISTHMUS_CASTING_UNSAFE) {
    return;
  }
  if (PyLong_CheckExact(number.ptr())) {
    if (out.kind == 'b') {
      raise_not_convertible(number, out);
    }
    return;
  }
  const ElementType* source_type =
      PyBool_Check(number.ptr()) != 0 ? &element_type(ISTHMUS_BOOL) : nullptr;
  if (source_type == nullptr && is_numpy_scalar(number)) {
    source_type = &to_element_type(nb::object(number.attr("dtype")));
  }
  const bool is_object = source_type == nullptr && PyIndex_Check(number.ptr()) != 0 &&
                         PyLong_Check(number.ptr()) == 0 && !is_array(number);
  if (is_object) {
    raise_not_convertible(number, out);
  }
  if (source_type != nullptr && isthmus_can_cast(source_type->dtype, out.dtype, casting) == 0) {
    raise_not_convertible(number, out);
  }
}

std::optional<ElementValue> to_value(nb::handle number, const ElementType& out,
                                     isthmus_casting_t casting) {
  if (PyBool_Check(number.ptr()) != 0) {
    return make_value(number.is(Py_True), element_type(ISTHMUS_BOOL));
  }
  if (PyLong_CheckExact(number.ptr())) {
    return integer_value(number, out);
  }
  if (PyFloat_Check(number.ptr()) != 0) {
    return float_value(number, out, casting);
  }
  const bool is_numpy = is_numpy_scalar(number);
  if (PyComplex_Check(number.ptr()) != 0 && !is_numpy) {
    return complex_value(number, out, casting);
  }
  if (!is_numpy && is_array(number)) {
    return {};  // even an array without dimensions, which has __index__
  }
  if (const nb::object integer = as_integer(number); integer.is_valid()) {
    return integer_value(integer, out);
  }
  return is_numpy ? numpy_value(number, out, casting) : std::nullopt;
}

bool is_untyped_number(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) != 0 || PySequence_Check(object.ptr()) != 0) {
    return false;
  }
  const auto type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return PyNumber_Check(object.ptr()) != 0 || PyObject_HasAttrString(type, "__complex__") != 0;
}

bool store_value(const ElementValue& value, void* element, const ElementType& type) noexcept {
  if (value.type == &type) {
    std::memcpy(element, value.bytes, type.item);
    return true;
  }
  if (value.type->dtype != ISTHMUS_FLOAT64 || type.dtype != ISTHMUS_FLOAT32) {
    return false;
  }
  const auto narrow = static_cast<float>(load<double>(value.bytes));
  std::memcpy(element, &narrow, sizeof narrow);
  return true;
}

}  // namespace isthmus::python
