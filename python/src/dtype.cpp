// SPDX-License-Identifier: Apache-2.0
#include "dtype.hpp"

#include <array>
#include <optional>

#include "errors.hpp"

namespace isthmus::python {
namespace {

struct DtypeName {
  const ElementType* of;
};
nb::handle dtype_class;
PyObject* instances[ISTHMUS_CLONGDOUBLE + 1] = {};  // by the library's number of the type

constexpr const char* k_no_numpys =
    "NumPy has no type %s: install ml_dtypes, or convert the array with astype('float32')";

const ElementType& named_by(const DtypeName& self) { return *self.of; }

// The types that NumPy has beside its own names and typestrs.
nb::object other_dtype(const ElementType& type) {
  if (type.typestr != nullptr) {
    return nb::module_::import_("numpy").attr("dtype")(typestr_of(type));
  }
  nb::object package = nb::steal(PyImport_ImportModule("ml_dtypes"));
  if (!package.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_ImportError) == 0) {
      raise_set();
    }
    PyErr_Clear();
    return {};
  }
  return nb::module_::import_("numpy").attr("dtype")(package.attr(type.name));
}

nb::object numpy_dtype(const DtypeName& self) {
  nb::object found = numpy_dtype_of(named_by(self));
  if (!found.is_valid()) {
    raise_python(PyExc_AttributeError, k_no_numpys, self.of->name);
  }
  return found;
}

// Like NumPy's dtypes, equal to everything that names the same type. NumPy may raise any error for
// text that names none.
nb::object equals(const DtypeName& self, nb::handle other) {
  if (const auto* named = type_named_by(other)) {
    return nb::bool_(named == self.of);
  }
  if (other.is_none()) {
    return nb::borrow(Py_NotImplemented);
  }
  try {
    return nb::bool_(&to_element_type(other) == self.of);
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_Exception)) {
      throw;
    }
    return nb::borrow(Py_NotImplemented);
  }
}

// The hash never changes: without ml_dtypes that of bfloat16 remains the hash of the name.
Py_hash_t hash_of(const DtypeName& self) {
  static std::optional<Py_hash_t> known[std::size(instances)];
  auto& found = known[self.of->dtype];
  if (!found) {
    const nb::object same = numpy_dtype_of(named_by(self));
    found = nb::hash(same.is_valid() ? same : nb::object{nb::str(self.of->name)});
  }
  return *found;
}

nb::object make(nb::handle given) { return nb::borrow(dtype_object_of(to_element_type(given))); }

void bind_numbers(nb::class_<DtypeName>& bound) {
  bound
      .def_prop_ro(
          "name", [](const DtypeName& self) { return self.of->name; },
          "NumPy's name, and \"longdouble\" and \"clongdouble\" on every machine.")
      .def_prop_ro(
          "itemsize", [](const DtypeName& self) { return self.of->item; }, "Bytes of an element.")
      .def_prop_ro(
          "alignment", [](const DtypeName& self) { return self.of->alignment; },
          "Alignment of an element's address, in bytes.")
      .def_prop_ro(
          "kind", [](const DtypeName& self) { return nb::str(&self.of->kind, 1); },
          nb::sig("def kind(self) -> str"),
          "NumPy's letter: \"b\" bool, \"i\" and \"u\" integers, \"f\" floats, \"c\" complex.")
      .def_prop_ro("dtype", &numpy_dtype, nb::sig("def dtype(self) -> Any"),
                   "The same as a numpy.dtype. NumPy reads it by itself: numpy.zeros(3, float32).\n"
                   "AttributeError for bfloat16 if the package ml_dtypes is not installed.");
}

}  // namespace

const ElementType* type_named_by(nb::handle object) noexcept {
  return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject*>(dtype_class.ptr())
             ? nb::inst_ptr<DtypeName>(object)->of
             : nullptr;
}

nb::handle dtype_object_of(const ElementType& type) {
  auto*& known = instances[type.dtype];
  if (known == nullptr) {
    known = make_instance<DtypeName>(dtype_class, DtypeName{&type}).release().ptr();
  }
  return known;
}

nb::object numpy_dtype_of(const ElementType& type) {
  static PyObject* known[std::size(instances)] = {};
  auto*& found = known[type.dtype];
  if (found == nullptr) {
    found = other_dtype(type).release().ptr();
  }
  return nb::borrow(found);
}

nb::object require_numpy_dtype(const ElementType& type) {
  nb::object found = numpy_dtype_of(type);
  if (!found.is_valid()) {
    raise_python(PyExc_TypeError, k_no_numpys, type.name);
  }
  return found;
}

void bind_dtype(nb::module_& module) {
  nb::class_<DtypeName> bound(
      module, "DType", nb::is_final(),
      "An element type: isthmus.bool, int8 .. int64, uint8 .. uint64, float16, bfloat16,\n"
      "float32, float64, longdouble, complex64, complex128, clongdouble.\n\n"
      "DType(x) is the type that `x` names: a DType, a NumPy dtype or scalar type, a name\n"
      "(\"float32\"), a typestr (\"<f4\"), or Python's bool, int, float or complex. There is\n"
      "one object per type. It equals everything that names the same type, and has NumPy's\n"
      "hash. Raises TypeError with the reason for other types.");
  dtype_class = bound;
  bound.def(nb::new_(&make), nb::arg("dtype").none());
  bind_numbers(bound);
  bound
      .def("__eq__", &equals, nb::arg("other").none(),
           nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", &hash_of)
      .def(
          "__repr__",
          [](const DtypeName& self) { return nb::str("isthmus.") + nb::str(self.of->name); },
          nb::sig("def __repr__(self) -> str"))
      .def("__str__", [](const DtypeName& self) { return self.of->name; })
      .def(
          "__reduce__", [](const DtypeName& self) { return self.of->name; },
          "Pickled by its name in this package.");
}

}  // namespace isthmus::python
