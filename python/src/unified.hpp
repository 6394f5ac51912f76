#pragma once
// The C++ side of UnifiedBuffer.

#include "array_layout.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "interruptible.hpp"
#include "objects.hpp"
#include "waiting.hpp"

namespace isthmus::python {

template <>
struct counted<isthmus_unified_t> {
  static void retain(isthmus_unified_t* raw) noexcept { isthmus_unified_retain(raw); }
  static void release(isthmus_unified_t* raw) noexcept { isthmus_unified_release(raw); }
};
using unified_handle = counted_handle<isthmus_unified_t>;

// How the array is laid out, and its copies as arrays. The host array is made once and handed out
// again: whether somebody else has it, or a view of it, its reference count tells, and while nobody
// has the library need not look for writes.
struct unified {
  owned_handle<isthmus_unified_t> raw;
  nb::object queue_object;
  nb::object shape;  // a tuple
  nb::object dtype;  // NumPy's
  std::size_t nbytes = 0;
  bool one_memory = false;
  nb::object host_bytes{};  // what the host array lies on
  nb::object host_array{};
  Py_ssize_t own_references = 0;  // to `host_bytes`, of ours and the array's
  bool is_out = false;            // the library counts a view
  nb::object typed_array{};       // NumPy's, where the device's is
  shared_layout device_layout{};  // elsewhere, once it was asked for
};

// TypeError for anything else.
[[nodiscard]] unified& require_unified(nb::handle object);
// For each call: the library first gets to know that the last view has ended.
[[nodiscard]] isthmus_unified_t* raw_of(unified& self) noexcept;
// The library's call without the interpreter's lock, and its errors.
template <class Call>
void call_without_lock(Call call) {
  const interruptible made;
  isthmus_status_t status;
  {
    const gil_release released;
    status = call();
  }
  made.check(status);
}

// The same of a call that waits for device work or for copies on their way: these are waited for
// first, which Ctrl-C interrupts. They then go on, and the buffer is as if it had not been called.
template <class Call>
void call_after_arrival(isthmus_unified_t* raw, isthmus_queue_t* queue, std::size_t begin,
                        std::size_t end, isthmus_arrival_t mode, Call call) {
  for (isthmus_status_t arrived = ISTHMUS_OK;;) {
    event_handle coming;
    call_without_lock([&] {
      // What failed fails again, or is reported, in the call itself.
      const auto asked =
          arrived == ISTHMUS_OK
              ? isthmus_unified_arrival(raw, queue, begin, end - begin, mode, coming.out())
              : ISTHMUS_OK;
      return asked != ISTHMUS_OK || coming ? asked : call();
    });
    if (!coming) {
      return;
    }
    arrived = wait_for_event(coming.get(), -1);
  }
}

extern PyType_Slot unified_slots[];
void bind_unified_arrays(nb::module_& module, nb::class_<unified>& bound);

}  // namespace isthmus::python
