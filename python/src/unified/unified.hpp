// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of UnifiedBuffer. Guarded by the interpreter's lock, which calls of the library
// release.

#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/interruptible.hpp"
#include "core/objects.hpp"
#include "core/waiting.hpp"
#include "layout/layout.hpp"

namespace isthmus::python {

using UnifiedHandle =
    CountedHandle<isthmus_unified_t, isthmus_unified_retain, isthmus_unified_release>;

// The shape of a unified buffer, and its copies as arrays. The host array is created once and
// returned again. Its reference count shows whether other code holds it or a view of it; while none
// does, the library need not check for host writes.
struct Unified {
  OwnedHandle<UnifiedHandle> raw;
  nb::object queue_object;
  nb::object shape;  // a tuple
  nb::object dtype;  // NumPy's
  std::size_t nbytes = 0;
  bool one_memory = false;
  nb::object host_bytes{};  // exporter of the host array's memory
  nb::object host_array{};
  Py_ssize_t own_references = 0;  // to `host_bytes`, from here and from the array
  bool is_exported = false;       // the library counts a view of the host copy
  nb::object typed_array{};       // NumPy's, if the device copy is a NumPy array
  SharedLayout device_layout{};   // otherwise, once it was requested
};

// TypeError for other objects.
[[nodiscard]] Unified& require_unified(nb::handle object);
// The handle for a library call. If the last view was released, reports that to the library first.
[[nodiscard]] isthmus_unified_t* raw_of(Unified& self) noexcept;
// Makes a library call that waits for device work or for pending transfers. Waits for these before
// the call, so that Ctrl-C can interrupt the wait. After an interrupt the transfers continue, and
// the buffer is unchanged by the call.
template <class Call>
void call_after_arrival(isthmus_unified_t* raw, isthmus_queue_t* queue, std::size_t begin,
                        std::size_t end, isthmus_arrival_t mode, Call call) {
  for (isthmus_status_t arrived = ISTHMUS_OK;;) {
    EventHandle arrival;
    call_interruptibly([&] {
      // A failed transfer fails again, or is reported, in the call itself.
      const auto status =
          arrived == ISTHMUS_OK
              ? isthmus_unified_arrival(raw, queue, begin, end - begin, mode, arrival.out())
              : ISTHMUS_OK;
      return status != ISTHMUS_OK || arrival ? status : call();
    });
    if (!arrival) {
      return;
    }
    arrived = wait_for_event(arrival.get(), -1);
  }
}

extern PyType_Slot unified_slots[];
void bind_unified_arrays(nb::module_& module, nb::class_<Unified>& bound);

}  // namespace isthmus::python
