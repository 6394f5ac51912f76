// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion between objects of dpctl and Isthmus, by the capsules that dpctl creates and accepts.
// A capsule holds a reference of its C interface, which the receiver copies. Needs the
// interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

// The dpctl module; None if the program has not imported it.
[[nodiscard]] nb::object loaded_dpctl();

// The object for a dpctl SyclQueue, SyclContext, SyclDevice or SyclEvent, or for a capsule of one,
// which is not consumed. Not valid, without an error set, for other objects. DeviceNotFoundError if
// there is no SYCL; ValueError for a sub-device, and for a device without USM.
[[nodiscard]] ISTHMUS_EXPORTED nb::object find_sycl_queue(nb::handle argument);
[[nodiscard]] nb::object find_sycl_context(nb::handle argument);
[[nodiscard]] nb::object find_sycl_device(nb::handle argument);
[[nodiscard]] nb::object find_sycl_event(nb::handle argument);

// Implements `_get_capsule`. TypeError for objects of other backends.
[[nodiscard]] ISTHMUS_EXPORTED nb::object sycl_capsule(const Queue& self);
[[nodiscard]] nb::object sycl_capsule(const Context& self);
// Waits until the operation has been submitted to the driver.
[[nodiscard]] nb::object sycl_capsule(const Event& self);

// TypeError if `find` does not recognize the object.
[[nodiscard]] nb::object from_sycl(nb::handle argument, nb::object (*find)(nb::handle),
                                   const char* noun);

// `noun` as in "Queue"; `signature` is that of Python.
template <class Bound>
void bind_from_sycl(Bound& bound, nb::object (*find)(nb::handle), const char* noun,
                    const char* signature) {
  bound.def_static(
      "from_sycl", [find, noun](nb::handle argument) { return from_sycl(argument, find, noun); },
      nb::arg("obj").none(), nb::sig(signature),
      "Converts a dpctl object, or a capsule of one, which is not consumed: the result\n"
      "represents the same SYCL object. Raises TypeError for other objects, DeviceNotFoundError\n"
      "if there is no SYCL, ValueError for a sub-device and for a device without USM.");
}

template <class Class, class Bound>
void bind_capsule(Bound& bound) {
  bound.def(
      "_get_capsule", [](const Class& self) { return sycl_capsule(self); },
      nb::sig("def _get_capsule(self) -> Any"),
      "For dpctl: a capsule of the SYCL object. Raises TypeError on other backends.");
}

}  // namespace isthmus::python
