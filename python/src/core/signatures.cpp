// SPDX-License-Identifier: Apache-2.0
// inspect.signature() of native functions, methods and classes, and with it the completion of
// keywords in IPython. inspect reads the attribute __signature__, which nanobind's types lack.
#include "core/bindings.hpp"

namespace isthmus::python {
namespace {

// Adds a property to a type that nanobind made immutable. The type belongs to this module's domain:
// no other package uses it.
void add_property(PyTypeObject* type, const char* name, const nb::object& getter) {
  const nb::object property = nb::borrow(reinterpret_cast<PyObject*>(&PyProperty_Type))(getter);
  const auto immutable = type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE;
  type->tp_flags &= ~immutable;
  const int status =
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), name, property.ptr());
  type->tp_flags |= immutable;  // the assignment has changed other flags
  if (status != 0) {
    throw nb::python_error();
  }
}

nb::object signature_of(nb::handle object) {
  return nb::module_::import_("isthmus._signatures").attr("signature_of")(object);
}

}  // namespace

void bind_signatures(nb::handle function, nb::handle cls, const char* method) {
  const nb::object unbound = cls.attr(method);
  const nb::object getter = nb::cpp_function(&signature_of, nb::arg("object"));
  const auto bound = unbound.attr("__get__")(nb::int_(0), cls);
  for (const nb::handle object : {function, nb::handle(unbound), nb::handle(bound), cls}) {
    add_property(Py_TYPE(object.ptr()), "__signature__", getter);
  }
}

}  // namespace isthmus::python
