// SPDX-License-Identifier: Apache-2.0
#include "layout/dtype.hpp"

#include <array>
#include <optional>

#include "core/errors.hpp"

namespace isthmus::python {
namespace {

struct DtypeName {
  const ElementType* type;
};
nb::handle dtype_class;
PyObject* instances[ISTHMUS_CLONGDOUBLE + 1] = {};  // by the library's number of the type

constexpr const char* k_no_numpy_type =
    "NumPy has no type %s: install ml_dtypes, or convert the array with astype('float32')";

const ElementType& named_by(const DtypeName& self) { return *self.type; }

// NumPy's dtype by typestr, else the dtype of the package ml_dtypes; not valid without that
// package.
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
    raise_python(PyExc_AttributeError, k_no_numpy_type, self.type->name);
  }
  return found;
}

// Like NumPy's dtypes, equal to everything that names the same type. NumPy may raise any error for
// text that names none.
nb::object equals(const DtypeName& self, nb::handle other) {
  if (const auto* named = type_named_by(other)) {
    return nb::bool_(named == self.type);
  }
  if (other.is_none()) {
    return nb::borrow(Py_NotImplemented);
  }
  try {
    return nb::bool_(&to_element_type(other) == self.type);
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_Exception)) {
      throw;
    }
    return nb::borrow(Py_NotImplemented);
  }
}

// The hash never changes: without ml_dtypes that of bfloat16 remains the hash of the name.
Py_hash_t hash_of(const DtypeName& self) {
  static std::optional<Py_hash_t> hashes[std::size(instances)];
  auto& entry = hashes[self.type->dtype];
  if (!entry) {
    const nb::object dtype = numpy_dtype_of(named_by(self));
    entry = nb::hash(dtype.is_valid() ? dtype : nb::object{nb::str(self.type->name)});
  }
  return *entry;
}

nb::object make_dtype(nb::handle argument) {
  return nb::borrow(dtype_object_of(to_element_type(argument)));
}

void bind_properties(nb::class_<DtypeName>& bound) {
  bound
      .def_prop_ro(
          "name", [](const DtypeName& self) { return self.type->name; },
          "NumPy's name, and \"longdouble\" and \"clongdouble\" on every machine.")
      .def_prop_ro(
          "itemsize", [](const DtypeName& self) { return self.type->item; }, "Bytes of an element.")
      .def_prop_ro(
          "alignment", [](const DtypeName& self) { return self.type->alignment; },
          "Alignment of an element's address, in bytes.")
      .def_prop_ro(
          "kind", [](const DtypeName& self) { return nb::str(&self.type->kind, 1); },
          nb::sig("def kind(self) -> str"),
          "NumPy's letter: \"b\" bool, \"i\" and \"u\" integers, \"f\" floats, \"c\" complex.")
      .def_prop_ro("dtype", &numpy_dtype, nb::sig("def dtype(self) -> Any"),
                   "The equivalent numpy.dtype. NumPy reads this attribute: numpy.zeros(3,\n"
                   "float32). AttributeError for bfloat16 if the package ml_dtypes is not\n"
                   "installed.");
}

}  // namespace

const ElementType* type_named_by(nb::handle object) noexcept {
  return Py_TYPE(object.ptr()) == reinterpret_cast<PyTypeObject*>(dtype_class.ptr())
             ? nb::inst_ptr<DtypeName>(object)->type
             : nullptr;
}

nb::handle dtype_object_of(const ElementType& type) {
  auto*& instance = instances[type.dtype];
  if (instance == nullptr) {
    instance = make_instance<DtypeName>(dtype_class, DtypeName{&type}).release().ptr();
  }
  return instance;
}

nb::object numpy_dtype_of(const ElementType& type) {
  static PyObject* dtypes[std::size(instances)] = {};
  auto*& entry = dtypes[type.dtype];
  if (entry == nullptr) {
    entry = other_dtype(type).release().ptr();
  }
  return nb::borrow(entry);
}

nb::object require_numpy_dtype(const ElementType& type) {
  nb::object found = numpy_dtype_of(type);
  if (!found.is_valid()) {
    raise_python(PyExc_TypeError, k_no_numpy_type, type.name);
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
  bound.def(nb::new_(&make_dtype), nb::arg("dtype").none());
  bind_properties(bound);
  bound
      .def("__eq__", &equals, nb::arg("other").none(),
           nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", &hash_of)
      .def(
          "__repr__",
          [](const DtypeName& self) { return nb::str("isthmus.") + nb::str(self.type->name); },
          nb::sig("def __repr__(self) -> str"))
      .def("__str__", [](const DtypeName& self) { return self.type->name; })
      .def(
          "__reduce__", [](const DtypeName& self) { return self.type->name; },
          "Pickled by its name in this package.");
}

}  // namespace isthmus::python
