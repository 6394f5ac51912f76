// SPDX-License-Identifier: Apache-2.0
// Array.flags: the order of the elements, and whether they may be written.

#include "array/array.hpp"
#include "array/bindings.hpp"
#include "core/arguments.hpp"

namespace isthmus::python {
namespace {

struct ArrayFlags {
  bool c_contiguous;
  bool f_contiguous;
  bool writeable;
};

bool is_fortran_dense(const TypedLayout& layout) {
  return layout.size == 0 || layout.is_column_major(layout.item);
}

ArrayFlags flags_of(const TypedArray& self) {
  return {self.layout->is_c_dense, is_fortran_dense(*self.layout), !is_read_only(self)};
}

bool flag_named(const ArrayFlags& self, nb::handle name) {
  const auto is = [name](const char* text) {
    return PyUnicode_Check(name.ptr()) != 0 &&
           PyUnicode_CompareWithASCIIString(name.ptr(), text) == 0;
  };
  const struct {
    const char* names[2];
    bool value;
  } entries[] = {{{"C", "C_CONTIGUOUS"}, self.c_contiguous},
                 {{"F", "F_CONTIGUOUS"}, self.f_contiguous},
                 {{"W", "WRITEABLE"}, self.writeable}};
  for (const auto& each : entries) {
    if (is(each.names[0]) || is(each.names[1])) {
      return each.value;
    }
  }
  raise_python(PyExc_KeyError, "%R is not a flag: use C_CONTIGUOUS, F_CONTIGUOUS or WRITEABLE",
               name.ptr());
}

nb::object flags_repr(const ArrayFlags& self) {
  const auto text = [](bool flag) { return flag ? "True" : "False"; };
  return nb::steal(
      PyUnicode_FromFormat("  C_CONTIGUOUS : %s\n  F_CONTIGUOUS : %s\n  WRITEABLE : %s\n",
                           text(self.c_contiguous), text(self.f_contiguous), text(self.writeable)));
}

}  // namespace

void bind_array_flags(nb::module_& module, nb::class_<TypedArray>& bound) {
  nb::class_<ArrayFlags>(module, "_ArrayFlags", "The type of Array.flags.")
      .def_ro("c_contiguous", &ArrayFlags::c_contiguous, "In C order without gaps.")
      .def_ro("f_contiguous", &ArrayFlags::f_contiguous, "In Fortran order without gaps.")
      .def_ro("writeable", &ArrayFlags::writeable, "Whether the array can be written.")
      .def_prop_ro(
          "contiguous", [](const ArrayFlags& self) { return self.c_contiguous; },
          "Same as c_contiguous.")
      .def_prop_ro(
          "forc", [](const ArrayFlags& self) { return self.c_contiguous || self.f_contiguous; },
          "In C or Fortran order without gaps.")
      .def_prop_ro(
          "fnc", [](const ArrayFlags& self) { return self.f_contiguous && !self.c_contiguous; },
          "In Fortran order without gaps, and not in C order.")
      .def("__getitem__", &flag_named, nb::arg("name").none(),
           nb::sig("def __getitem__(self, name: str) -> bool"),
           "A flag by its NumPy name, such as \"C_CONTIGUOUS\" or \"C\". Raises KeyError for\n"
           "others.")
      .def("__repr__", &flags_repr, nb::sig("def __repr__(self) -> str"));
  bound
      .def_prop_ro("flags", &flags_of, nb::sig("def flags(self) -> _ArrayFlags"),
                   "c_contiguous, f_contiguous and writeable, as in NumPy.")
      .def_prop_ro(
          "is_contiguous", [](const TypedArray& self) { return self.layout->is_c_dense; },
          "Whether its elements lie in C order without gaps.");
}

}  // namespace isthmus::python
