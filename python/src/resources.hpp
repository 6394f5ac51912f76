#pragma once
// What the classes of memory resources have in common.

#include "objects.hpp"

namespace isthmus::python {

// What a resource is for, from the arguments kind, device and context.
struct purpose {
  isthmus_kind_t kind;
  nb::object where;
  context_handle usual;  // where none is named
  isthmus_context_t* within = nullptr;
  nb::object queue;

  // The exceptions of bad arguments, DeviceNotFoundError.
  purpose(nb::handle of_kind, nb::handle on, nb::handle in);
  [[nodiscard]] isthmus_device_t* device_raw() const noexcept {
    return device_of(where)->raw.get();
  }
};

// TypeError for what is no resource.
[[nodiscard]] const resource& require_resource(nb::handle given, const char* what);

void bind_custom(nb::module_& module);
void bind_adaptors(nb::module_& module);

}  // namespace isthmus::python
