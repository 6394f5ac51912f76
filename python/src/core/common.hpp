// SPDX-License-Identifier: Apache-2.0
#pragma once
// Included by every file of the module: the C ABI, nanobind, reference-counted handles.
//
// The module uses the library through its public headers. It calls the C functions itself, because
// it releases the interpreter's lock around some of them and reports errors as Python exceptions.
// Its state is in globals that the interpreter's lock guards: one interpreter per process.

#include <isthmus/experimental.h>
#include <nanobind/nanobind.h>
#include <isthmus/handle.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/exported.hpp"

namespace nb = nanobind;

namespace isthmus::python {

// Owns one reference to an object of the library.
template <class Raw, auto Retain, auto Release>
class CountedHandle
    : public isthmus::detail::handle<CountedHandle<Raw, Retain, Release>, Raw, Retain, Release> {};

using PlatformHandle =
    CountedHandle<isthmus_platform_t, isthmus_platform_retain, isthmus_platform_release>;
using DeviceHandle = CountedHandle<isthmus_device_t, isthmus_device_retain, isthmus_device_release>;
using ContextHandle =
    CountedHandle<isthmus_context_t, isthmus_context_retain, isthmus_context_release>;
using QueueHandle = CountedHandle<isthmus_queue_t, isthmus_queue_retain, isthmus_queue_release>;
using EventHandle = CountedHandle<isthmus_event_t, isthmus_event_retain, isthmus_event_release>;
using ResourceHandle =
    CountedHandle<isthmus_resource_t, isthmus_resource_retain, isthmus_resource_release>;
using ScopeHandle = CountedHandle<isthmus_scope_t, isthmus_scope_retain, isthmus_scope_release>;
using BudgetHandle = CountedHandle<isthmus_budget_t, isthmus_budget_retain, isthmus_budget_release>;
using BufferHandle = CountedHandle<isthmus_buffer_t, isthmus_buffer_retain, isthmus_buffer_release>;

// A new Python object of the bound class T, or of `type`, a subclass of it.
template <class T, class... Args>
[[nodiscard]] nb::object make_instance(nb::handle type, Args&&... args) {
  nb::object object = nb::inst_alloc(type);
  if (!object.is_valid()) {
    throw nb::python_error();
  }
  new (nb::inst_ptr<T>(object)) T(std::forward<Args>(args)...);
  nb::inst_mark_ready(object);
  return object;
}

// The C++ side of a Python object; nullptr if it has another type or its __init__ never ran.
template <class T>
[[nodiscard]] T* instance_of(nb::handle type, nb::handle object) noexcept {
  const auto* expected = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto* actual = Py_TYPE(object.ptr());
  if (actual != expected && actual->tp_base != expected &&
      PyType_IsSubtype(actual, const_cast<PyTypeObject*>(expected)) == 0) {
    return nullptr;
  }
  return nb::inst_ready(object) ? nb::inst_ptr<T>(object) : nullptr;
}

}  // namespace isthmus::python
