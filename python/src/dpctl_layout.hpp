#pragma once
// A memory object of dpctl's as its public declarations (dpctl/memory/_memory.pxd) lay it out.
// isthmus.compat.dpctl._layout holds them against the ones that are installed.

#include <cstddef>
#include <memory>

#include "objects.hpp"

namespace isthmus::python {

struct dpctl_memory {
  PyObject_HEAD void** functions;  // Cython's table, of the C functions below
  void* pointer;
  std::shared_ptr<void>* owner;  // dpctl deletes it with the object
  Py_ssize_t nbytes;
  PyObject* queue;  // a dpctl.SyclQueue, or None
  PyObject* reference;
};

// The last two that dpctl and C++ programs ask an object for.
inline constexpr std::size_t k_get_data_ptr = 9;
inline constexpr std::size_t k_get_opaque_ptr = 10;
inline constexpr std::size_t k_function_count = 15;

using dpctl_getter = void* (*)(dpctl_memory*);

[[nodiscard]] inline dpctl_memory& as_dpctl(nb::handle object) noexcept {
  return *reinterpret_cast<dpctl_memory*>(object.ptr());
}

}  // namespace isthmus::python
