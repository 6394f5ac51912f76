#pragma once
// Objects of dpctl's as objects of ours, and the other way, by the capsules that dpctl makes and
// takes: each holds a reference of its C interface, which whoever takes it copies.

#include "objects.hpp"

namespace isthmus::python {

// The module, None if the program has not imported it.
[[nodiscard]] nb::object loaded_dpctl();

// A dpctl SyclQueue, SyclContext, SyclDevice or SyclEvent, or a capsule of one, which is not used
// up by that: our object for it. Not valid if it is none, and then no error is set.
// DeviceNotFoundError where there is no SYCL; ValueError for a part of a device, and for a device
// without USM.
[[nodiscard]] nb::object find_sycl_queue(nb::handle given);
[[nodiscard]] nb::object find_sycl_context(nb::handle given);
[[nodiscard]] nb::object find_sycl_device(nb::handle given);
[[nodiscard]] nb::object find_sycl_event(nb::handle given);

// `_get_capsule` of ours. TypeError for those of other back-ends.
[[nodiscard]] nb::object sycl_capsule(const queue& self);
[[nodiscard]] nb::object sycl_capsule(const context& self);
// Waits while the driver has not got it yet.
[[nodiscard]] nb::object sycl_capsule(const event& self);

// TypeError for what `find` does not know.
[[nodiscard]] nb::object from_sycl(nb::handle given, nb::object (*find)(nb::handle),
                                   const char* noun);

// `noun` as in "Queue"; `signature` is Python's.
template <class Bound>
void bind_from_sycl(Bound& bound, nb::object (*find)(nb::handle), const char* noun,
                    const char* signature) {
  bound.def_static(
      "from_sycl", [find, noun](nb::handle given) { return from_sycl(given, find, noun); },
      nb::arg("given").none(), nb::sig(signature),
      "For an object of dpctl's or a capsule of one, which is not used up: the same object\n"
      "of SYCL's. Raises TypeError for others, DeviceNotFoundError where there is no SYCL,\n"
      "ValueError for a part of a device and for one without USM.");
}

template <class Class, class Bound>
void bind_capsule(Bound& bound) {
  bound.def(
      "_get_capsule", [](const Class& self) { return sycl_capsule(self); },
      nb::sig("def _get_capsule(self) -> Any"),
      "For dpctl: a capsule of SYCL's own object. Raises TypeError on other back-ends.");
}

}  // namespace isthmus::python
