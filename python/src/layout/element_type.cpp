// SPDX-License-Identifier: Apache-2.0
// The element types of arrays, and each protocol's name for them. Guarded by the interpreter's
// lock.

#include <isthmus/detail/dtype_facts.hpp>

#include <array>
#include <bit>
#include <cstring>

#include "core/errors.hpp"
#include "layout/dtype.hpp"

namespace isthmus::python {
namespace {

static_assert(std::endian::native == std::endian::little, "typestrs below begin with <");
static_assert(sizeof(long) == 8, "NumPy's int64 is a long");

constexpr ElementType type_of(isthmus_dtype_t dtype, const char* typestr,
                              const char* format) noexcept {
  const auto& facts = dtype_table::facts_of(dtype);
  return {facts.kind,
          static_cast<std::uint8_t>(facts.nbytes),
          facts.dlpack_code,
          typestr,
          format,
          facts.name,
          static_cast<std::uint8_t>(facts.alignment),
          dtype};
}

// In the order of their numbers. float16 comes before bfloat16, which has the same kind and size.
constexpr ElementType k_types[] = {
    type_of(ISTHMUS_BOOL, "|b1", "?"),           type_of(ISTHMUS_INT8, "|i1", "b"),
    type_of(ISTHMUS_INT16, "<i2", "h"),          type_of(ISTHMUS_INT32, "<i4", "i"),
    type_of(ISTHMUS_INT64, "<i8", "l"),          type_of(ISTHMUS_UINT8, "|u1", "B"),
    type_of(ISTHMUS_UINT16, "<u2", "H"),         type_of(ISTHMUS_UINT32, "<u4", "I"),
    type_of(ISTHMUS_UINT64, "<u8", "L"),         type_of(ISTHMUS_FLOAT16, "<f2", "e"),
    type_of(ISTHMUS_BFLOAT16, nullptr, nullptr), type_of(ISTHMUS_FLOAT32, "<f4", "f"),
    type_of(ISTHMUS_FLOAT64, "<f8", "d"),        type_of(ISTHMUS_LONGDOUBLE, "<f16", "g"),
    type_of(ISTHMUS_COMPLEX64, "<c8", "Zf"),     type_of(ISTHMUS_COMPLEX128, "<c16", "Zd"),
    type_of(ISTHMUS_CLONGDOUBLE, "<c32", "Zg")};
static_assert(std::size(k_types) == dtype_table::k_count);

const ElementType* find(char kind, std::int64_t item) {
  for (const auto& each : k_types) {
    if (each.kind == kind && each.item == item) {
      return &each;
    }
  }
  return nullptr;
}

// The reason that arrays do not support NumPy dtypes of that kind.
const char* unsupported_reason(char kind) {
  switch (kind) {
    case 'O': return "references to Python objects are not valid on a device";
    case 'V': return "a record has several fields: create one array for each";
    case 'S':
    case 'U': return "text is not a number";
    case 'M':
    case 'm': return "dates and times are not numbers: view them as int64";
    case 'T': return "text of variable length is stored outside the array";
    default:
      return "it is not in native byte order: convert it, as in "
             "x.astype(x.dtype.newbyteorder('='))";
  }
}

[[noreturn]] void raise_unsupported(nb::handle dtype, nb::handle argument) {
  const nb::object kind = dtype.attr("kind");
  raise_python(
      PyExc_TypeError,
      "dtype must be a bool, integer, float or complex type in native byte order, not %R: %s",
      argument.ptr(), unsupported_reason(nb::cast<const char*>(kind)[0]));
}

// The package ml_dtypes defines bfloat16 as a named void type of two bytes.
bool is_bfloat16(nb::handle dtype) {
  return dtype.attr("kind").equal(nb::str("V")) && dtype.attr("name").equal(nb::str("bfloat16"));
}

const ElementType& type_of_numpy_dtype(nb::handle dtype, nb::handle argument) {
  const auto* found = find_numpy_type(dtype);
  if (found == nullptr) {
    raise_unsupported(dtype, argument);
  }
  return *found;
}

// Caches the types and dtypes that NumPy was called for, and string literals of programs. Entries
// are never removed. It is a hash table by address, so that every lookup takes the same time.
// Guarded by the interpreter's lock.
class DtypeCache {
 public:
  [[nodiscard]] const ElementType* find(nb::handle argument) const noexcept {
    return entries_[index_of(argument)].type;
  }
  void insert(nb::handle argument, const ElementType& type) noexcept {
    auto& entry = entries_[index_of(argument)];
    if (entry.dtype == nullptr && size_ < k_max_size) {
      entry = {Py_NewRef(argument.ptr()), &type};
      ++size_;
    }
  }

 private:
  static constexpr std::size_t k_capacity = 64;
  static constexpr std::size_t k_max_size = k_capacity / 2;
  struct Entry {
    PyObject* dtype = nullptr;
    const ElementType* type = nullptr;
  };
  // The index of the argument's entry, or of an empty entry. There is always an empty entry.
  [[nodiscard]] std::size_t index_of(nb::handle argument) const noexcept {
    constexpr unsigned k_aligned_bits = 4;
    auto index = (reinterpret_cast<std::uintptr_t>(argument.ptr()) >> k_aligned_bits) % k_capacity;
    while (entries_[index].dtype != nullptr && entries_[index].dtype != argument.ptr()) {
      index = (index + 1) % k_capacity;
    }
    return index;
  }
  std::array<Entry, k_capacity> entries_{};
  std::size_t size_ = 0;
};

}  // namespace

std::span<const ElementType> element_types() noexcept { return k_types; }

const ElementType* find_element_type(nb::handle argument) {
  const char* text =
      PyUnicode_Check(argument.ptr()) != 0 ? PyUnicode_AsUTF8(argument.ptr()) : nullptr;
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

const ElementType* find_numpy_type(nb::handle dtype) {
  if (const auto* found = find_element_type(nb::object(dtype.attr("str")))) {
    return found;
  }
  return is_bfloat16(dtype) ? &element_type(ISTHMUS_BFLOAT16) : nullptr;
}

const ElementType* element_type_of_format(const char* format, std::int64_t item) {
  if (format == nullptr) {
    return item == 1 ? &byte_type() : nullptr;
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
  // The widths of these types differ between machines; the view reports the item size.
  return letter == '?'                              ? find('b', item)
         : std::strchr("bhilqn", letter) != nullptr ? find('i', item)
         : std::strchr("BHILQN", letter) != nullptr ? find('u', item)
                                                    : nullptr;
}

const ElementType& to_element_type(nb::handle argument) {
  static DtypeCache cache;
  if (const auto* named = type_named_by(argument)) {
    return *named;
  }
  if (argument.is_none()) {
    return default_element_type();
  }
  if (const auto* type = cache.find(argument)) {
    return *type;
  }
  if (const auto* named = find_element_type(argument)) {
    if (PyUnicode_CHECK_INTERNED(argument.ptr()) != 0) {
      cache.insert(argument, *named);
    }
    return *named;
  }
  const nb::object numpy_dtype = nb::module_::import_("numpy").attr("dtype")(argument);
  const auto& found = type_of_numpy_dtype(numpy_dtype, argument);
  if (PyType_Check(argument.ptr()) != 0 || numpy_dtype.is(argument)) {
    cache.insert(argument, found);
  }
  return found;
}

nb::handle typestr_of(const ElementType& type) {
  static PyObject* cache[std::size(k_types)] = {};
  if (type.typestr == nullptr) {
    raise_python(PyExc_AttributeError, "the array interfaces have no name for %s: use DLPack",
                 type.name);
  }
  auto*& entry = cache[type.dtype - 1];
  if (entry == nullptr) {
    entry = PyUnicode_InternFromString(type.typestr);
  }
  return entry;
}

nb::handle dtype_of(const ElementType& type) {
  static PyObject* cache[std::size(k_types)] = {};
  auto*& entry = cache[type.dtype - 1];
  if (entry == nullptr) {
    const nb::object numpy_dtype = numpy_dtype_of(type);
    entry =
        (numpy_dtype.is_valid() ? numpy_dtype : nb::borrow(dtype_object_of(type))).inc_ref().ptr();
  }
  return entry;
}

}  // namespace isthmus::python
