#pragma once
// The C++ side of UnifiedBuffer.

#include "array_layout.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "objects.hpp"

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
  ~unified() {
    const gil_release released;
    raw = unified_handle{};
  }

  unified_handle raw;
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
  const carrying exceptions;  // of functions that a resource calls
  isthmus_status_t status;
  {
    const gil_release released;
    status = call();
  }
  check(status);
}

extern PyType_Slot unified_slots[];
void bind_unified_arrays(nb::module_& module, nb::class_<unified>& bound);

}  // namespace isthmus::python
