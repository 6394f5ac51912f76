// SPDX-License-Identifier: Apache-2.0
#include "buffer/host_access.hpp"

#include "buffer/bindings.hpp"
#include "core/caller_warning.hpp"
#include "core/errors.hpp"

namespace isthmus::python {
namespace {

// These live as long as the module.
PyObject* portability_warning = nullptr;
PyObject* strict_scope = nullptr;  // a context variable, set inside strict()

bool is_strict_by_default = false;

bool set_strict_default(bool enabled) { return std::exchange(is_strict_by_default, enabled); }

}  // namespace

bool is_strict() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(strict_scope, nullptr, &value) != 0) {
    raise_set();
  }
  const nb::object held = nb::steal(value);
  return held.is_valid() ? held.is(Py_True) : is_strict_by_default;
}

void warn_if_not_portable(isthmus_kind_t kind) {
  if (!host_reachable(kind)) {
    warn_caller(portability_warning,
                "the host accesses memory of kind 'device', which only the device 'host' allows: "
                "use to_numpy(), which copies on every device, or memory of kind 'shared'");
  }
}

void bind_host_access(nb::module_& module) {
  const auto name = std::string{nb::cast<const char*>(module.attr("__name__"))};
  portability_warning = PyErr_NewExceptionWithDoc(
      (name + ".PortabilityWarning").c_str(),
      "The host accessed memory of device kind of the device \"host\". The same access fails on\n"
      "every other device, and in strict mode.",
      PyExc_UserWarning, nullptr);
  strict_scope = PyContextVar_New("isthmus.strict", nullptr);
  if (portability_warning == nullptr || strict_scope == nullptr) {
    raise_set();
  }
  module.attr("PortabilityWarning") = nb::borrow(portability_warning);
  module.attr("_strict_scope") = nb::borrow(strict_scope);
  module.def("_set_strict_default", &set_strict_default, nb::arg("enabled"),
             nb::sig("def _set_strict_default(enabled: bool) -> bool"),
             "Sets whether strict mode is on outside of strict(), and returns the former setting.");
}

}  // namespace isthmus::python
