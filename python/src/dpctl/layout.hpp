// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ABI layout of a dpctl memory object, as its public declarations (dpctl/memory/_memory.pxd)
// define it. isthmus.compat.dpctl._layout compares it with the declarations of the installed dpctl.

#include <cstddef>
#include <memory>

#include "core/objects.hpp"

namespace isthmus::python {

struct DpctlMemory {
  PyObject_HEAD void** functions;  // Cython's table, of the C functions below
  void* pointer;
  std::shared_ptr<void>* owner;  // deleted by dpctl with the object
  Py_ssize_t nbytes;
  PyObject* queue;  // a dpctl.SyclQueue, or None
  PyObject* reference;
};

// An object of Isthmus' classes. dpctl's constructors, which create views of other objects, copy
// the owner of those without a call to them. An object of new memory therefore stores its owner
// here: without an `owner` of dpctl's, the constructors read its `reference_obj`, which records
// that the address was exported.
struct IsthmusMemory {
  DpctlMemory base;
  std::shared_ptr<void>* first_owner;  // deleted with the object; null for other memory and views
};

// The last two functions in the table that dpctl and C++ programs call.
inline constexpr std::size_t k_get_data_ptr = 9;
inline constexpr std::size_t k_get_opaque_ptr = 10;
inline constexpr std::size_t k_function_count = 15;

using DpctlGetter = void* (*)(DpctlMemory*);

// Set when isthmus.compat.dpctl.memory is imported. That module is never unloaded, so the
// references are never released.
struct DpctlTypes {
  nb::handle memory_base;      // dpctl's _Memory
  nb::handle queue;            // dpctl's SyclQueue
  nb::handle classes[4];       // Isthmus' classes, by kind
  nb::handle base_classes[4];  // their base classes, by kind
  nb::handle allocation_error, alignment_error;
  void** functions = nullptr;  // Cython's table of the objects of Isthmus' classes, and no others
};
inline DpctlTypes dpctl;

[[nodiscard]] inline DpctlMemory& as_dpctl(nb::handle object) noexcept {
  return *reinterpret_cast<DpctlMemory*>(object.ptr());
}

[[nodiscard]] inline bool is_dpctl_memory(nb::handle object) noexcept {
  return PyObject_TypeCheck(object.ptr(),
                            reinterpret_cast<PyTypeObject*>(dpctl.memory_base.ptr())) != 0;
}
// The object as one of Isthmus' classes; null if it is not.
[[nodiscard]] inline IsthmusMemory* as_isthmus(DpctlMemory& object) noexcept {
  return object.functions == dpctl.functions ? reinterpret_cast<IsthmusMemory*>(&object) : nullptr;
}

}  // namespace isthmus::python
