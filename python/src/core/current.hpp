// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the device or queue of a call: the one that the caller named, else the one that a `with`
// statement set, else the default. Needs the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

[[nodiscard]] inline bool has_value(nb::handle argument) noexcept {
  return argument.is_valid() && !argument.is_none();
}

// Converts a Device, a dpctl device or a filter string; None and nullptr stand for the current
// device. TypeError for other objects.
[[nodiscard]] nb::object to_device(nb::handle argument);
// Returns `queue` (a Queue or a dpctl queue), else the default queue of `device`, else the current
// queue. None and nullptr count as absent. ValueError if both are specified and do not match.
[[nodiscard]] nb::object to_queue(nb::handle queue, nb::handle device);
// The library's handle of `queue`, which `holder` keeps alive; null for None and nullptr. TypeError
// for other objects.
[[nodiscard]] isthmus_queue_t* raw_queue(nb::handle queue, nb::object& holder);
[[nodiscard]] ISTHMUS_EXPORTED nb::object default_queue_of(const Device& device);

// Null for None. TypeError for other objects than contexts.
[[nodiscard]] const Context* context_or_none(nb::handle argument);
[[nodiscard]] nb::object first_device_of(const Context& context);
// The device's default queue if it is of that context, else a new one.
[[nodiscard]] nb::object queue_in_context(const Device& device, const Context& context);

[[nodiscard]] nb::object current_queue();
[[nodiscard]] nb::object current_device();
void enter_current(nb::handle entry);
void leave_current(nb::handle entry);
// `with queue:` and `with device:`, for this thread and asyncio task.
template <class Class>
void bind_with(Class& bound) {
  bound
      .def(
          "__enter__",
          [](nb::object self) {
            enter_current(self);
            return self;
          },
          nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](nb::handle self, nb::args) { leave_current(self); },
          nb::sig("def __exit__(self, *exc: object) -> None"));
}

void bind_current(nb::module_& module);
// Drops the cached objects before the interpreter ends.
void clear_current() noexcept;

}  // namespace isthmus::python
