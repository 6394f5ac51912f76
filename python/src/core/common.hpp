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
using UsingHandle = CountedHandle<isthmus_using_t, isthmus_using_retain, isthmus_using_release>;
using ScopeHandle = CountedHandle<isthmus_scope_t, isthmus_scope_retain, isthmus_scope_release>;
using BudgetHandle = CountedHandle<isthmus_budget_t, isthmus_budget_retain, isthmus_budget_release>;
using BufferHandle = CountedHandle<isthmus_buffer_t, isthmus_buffer_retain, isthmus_buffer_release>;

// A structure of the library whose members are 0, to be filled in by a call or passed to one.
template <class Structure>
[[nodiscard]] Structure sized() noexcept {
  Structure structure{};
  structure.struct_size = sizeof structure;
  return structure;
}

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

// Binds __repr__ to that function of isthmus._reprs.
template <class Bound>
void bind_repr(Bound& bound, const char* function) {
  bound.def(
      "__repr__",
      [function](nb::pointer_and_handle<typename Bound::Type> self) {
        return nb::module_::import_("isthmus._reprs").attr(function)(self.h);
      },
      nb::sig("def __repr__(self) -> str"));
}

// Binds __eq__ and __hash__: objects that `find` recognizes are equal if they have the same key.
template <class Class, class Bound, class Key, class Find>
void bind_key(Bound& bound, Key key, Find find) {
  bound
      .def(
          "__eq__",
          [key, find](const Class& self, nb::handle other) {
            const Class* other_object = find(other);
            return other_object == nullptr ? nb::borrow(Py_NotImplemented)
                                           : nb::object{nb::bool_(key(self) == key(*other_object))};
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", key);
}

// Binds `with object as object:`, which calls enter(object) and at the end leave(object).
template <class Class, class Bound, class Enter, class Leave>
void bind_scope(Bound& bound, Enter enter, Leave leave) {
  bound
      .def(
          "__enter__",
          [enter](nb::object self) {
            enter(self);
            return self;
          },
          nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [leave](Class& self, const nb::args&) { leave(self); },
          nb::sig("def __exit__(self, *exc: object) -> None"));
}
inline void enter_nothing(nb::handle) noexcept {}

}  // namespace isthmus::python
