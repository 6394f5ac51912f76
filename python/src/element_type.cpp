// The types of elements that arrays share, by each protocol's name for them.

#include <array>
#include <bit>
#include <cstring>

#include "array_layout.hpp"
#include "errors.hpp"

namespace isthmus::python {
namespace {

static_assert(std::endian::native == std::endian::little, "typestrs below begin with <");
static_assert(sizeof(long) == 8, "NumPy's int64 is a long");

constexpr element_type k_types[] = {
    {'b', 1, 6, "|b1", "?", "bool", 1, ISTHMUS_BOOL},
    {'i', 1, 0, "|i1", "b", "int8", 1, ISTHMUS_INT8},
    {'i', 2, 0, "<i2", "h", "int16", 2, ISTHMUS_INT16},
    {'i', 4, 0, "<i4", "i", "int32", 4, ISTHMUS_INT32},
    {'i', 8, 0, "<i8", "l", "int64", 8, ISTHMUS_INT64},
    {'u', 1, 1, "|u1", "B", "uint8", 1, ISTHMUS_UINT8},
    {'u', 2, 1, "<u2", "H", "uint16", 2, ISTHMUS_UINT16},
    {'u', 4, 1, "<u4", "I", "uint32", 4, ISTHMUS_UINT32},
    {'u', 8, 1, "<u8", "L", "uint64", 8, ISTHMUS_UINT64},
    {'f', 2, 2, "<f2", "e", "float16", 2, ISTHMUS_FLOAT16},
    {'f', 4, 2, "<f4", "f", "float32", 4, ISTHMUS_FLOAT32},
    {'f', 8, 2, "<f8", "d", "float64", 8, ISTHMUS_FLOAT64},
    {'f', 16, 2, "<f16", "g", "longdouble", 16, ISTHMUS_LONGDOUBLE},
    {'c', 8, 5, "<c8", "Zf", "complex64", 4, ISTHMUS_COMPLEX64},
    {'c', 16, 5, "<c16", "Zd", "complex128", 8, ISTHMUS_COMPLEX128},
    {'c', 32, 5, "<c32", "Zg", "clongdouble", 16, ISTHMUS_CLONGDOUBLE},
    {'f', 2, 4, nullptr, nullptr, "bfloat16", 2, ISTHMUS_BFLOAT16}};  // behind float16
constexpr const element_type& k_byte = k_types[5];

const element_type* find(char kind, std::int64_t item) {
  for (const auto& each : k_types) {
    if (each.kind == kind && each.item == item) {
      return &each;
    }
  }
  return nullptr;
}

// Python's objects of each type, once they were asked for; guarded by the interpreter's lock.
using objects_of_types = std::array<PyObject*, std::size(k_types)>;

std::size_t index_of(const element_type& of) { return static_cast<std::size_t>(&of - k_types); }

}  // namespace

const element_type& byte_type() noexcept { return k_byte; }

const element_type* find_element_type(nb::handle given) {
  const char* text = PyUnicode_Check(given.ptr()) != 0 ? PyUnicode_AsUTF8(given.ptr()) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const bool has_order = *text != '\0' && std::strchr("<|=", *text) != nullptr;
  for (const auto& each : k_types) {
    const bool is_typestr =
        each.typestr != nullptr && std::strcmp(text + (has_order ? 1 : 0), each.typestr + 1) == 0;
    if (is_typestr || std::strcmp(text, each.name) == 0) {
      return &each;
    }
  }
  return nullptr;
}

const element_type* element_type_of_format(const char* format, std::int64_t item) {
  if (format == nullptr) {
    return item == 1 ? &k_byte : nullptr;
  }
  if (*format == '@' || *format == '=' || *format == '<') {
    ++format;
  }
  const bool is_complex = *format == 'Z';
  const char letter = is_complex ? format[1] : *format;
  if (letter == '\0' || format[is_complex ? 2 : 1] != '\0') {
    return nullptr;
  }
  if (std::strchr("efdg", letter) != nullptr) {
    return find(is_complex ? 'c' : 'f', item);
  }
  if (is_complex) {
    return nullptr;
  }
  // How wide they are differs from machine to machine: the view says it.
  return letter == '?'                              ? find('b', item)
         : std::strchr("bhilqn", letter) != nullptr ? find('i', item)
         : std::strchr("BHILQN", letter) != nullptr ? find('u', item)
                                                    : nullptr;
}

const element_type& to_element_type(nb::handle dtype) {
  const auto* found = find_element_type(dtype);
  if (found == nullptr) {
    const nb::object known = nb::module_::import_("numpy").attr("dtype")(dtype);
    found = find_element_type(nb::object(known.attr("str")));
  }
  if (found == nullptr) {
    raise_python(PyExc_TypeError,
                 "dtype must be a bool, integer, float or complex type in this machine's order of "
                 "bytes, not %R",
                 dtype.ptr());
  }
  return *found;
}

nb::handle typestr_of(const element_type& of) {
  static objects_of_types known{};
  if (of.typestr == nullptr) {
    raise_python(PyExc_AttributeError, "the array interfaces have no name for %s: use DLPack",
                 of.name);
  }
  auto*& found = known[index_of(of)];
  if (found == nullptr) {
    found = PyUnicode_InternFromString(of.typestr);
  }
  return found;
}

nb::handle dtype_of(const element_type& of) {
  static objects_of_types known{};
  auto*& found = known[index_of(of)];
  if (found == nullptr) {
    found = nb::object(nb::module_::import_("numpy").attr("dtype")(typestr_of(of))).release().ptr();
  }
  return found;
}

}  // namespace isthmus::python
