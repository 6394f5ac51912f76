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

// The last two functions in the table that dpctl and C++ programs call.
inline constexpr std::size_t k_get_data_ptr = 9;
inline constexpr std::size_t k_get_opaque_ptr = 10;
inline constexpr std::size_t k_function_count = 15;

using DpctlGetter = void* (*)(DpctlMemory*);

[[nodiscard]] inline DpctlMemory& as_dpctl(nb::handle object) noexcept {
  return *reinterpret_cast<DpctlMemory*>(object.ptr());
}

}  // namespace isthmus::python
