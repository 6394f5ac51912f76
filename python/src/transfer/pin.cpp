// SPDX-License-Identifier: Apache-2.0
// Pinning memory of Python objects.

#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/owners.hpp"
#include "core/waiting.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

struct MemoryPin {
  MemoryPin(isthmus_pin_t* owned, nb::object device) noexcept
      : raw{owned}, device_object{std::move(device)} {}
  MemoryPin(const MemoryPin&) = delete;
  MemoryPin& operator=(const MemoryPin&) = delete;
  // The owner keeps the memory alive until the driver has unregistered it. Does not wait.
  ~MemoryPin() {
    if (raw != nullptr) {
      const GilRelease released;
      isthmus_pin_remove(raw, 0);
    }
  }

  isthmus_pin_t* raw;  // null once it was released
  nb::object device_object;
};

struct MemoryToPin {
  const void* pointer = nullptr;
  std::size_t nbytes = 0;
  bool read_only = false;
  isthmus_owner_t owner{};
};

MemoryToPin memory_of(nb::handle array) {
  Endpoint endpoint = to_endpoint(array, Access::read, "array");
  MemoryToPin memory{endpoint.raw.pointer, endpoint.nbytes};
  if (endpoint.raw.buffer != nullptr) {
    const auto info = read_info<isthmus_buffer_info_t>(isthmus_buffer_info, endpoint.raw.buffer);
    memory.pointer = info.pointer;
    memory.read_only = info.read_only != 0;
  } else if (endpoint.memory != nullptr) {
    memory.read_only = endpoint.memory->view.readonly != 0;
  }
  memory.owner =
      endpoint.memory != nullptr ? defer_owner(endpoint.memory.release()) : keep_alive(array);
  return memory;
}

MemoryToPin memory_at(nb::handle pointer, nb::handle nbytes, nb::handle owner) {
  MemoryToPin memory{to_pointer(pointer, "array"), to_bytes(nbytes, "nbytes")};
  memory.owner = keep_alive(owner);
  return memory;
}

nb::object pin_memory(nb::handle array, nb::handle nbytes, nb::handle device, nb::handle read_only,
                      nb::handle owner) {
  drain_deferred();
  const bool only_read = to_flag(read_only, "read_only");
  nb::object device_object = to_device(device);
  std::optional<nb::python_error> cause;
  const bool is_address = as_integer(array, &cause).is_valid();
  if (!is_address && (!nbytes.is_none() || !owner.is_none())) {
    raise_type_error(cause,
                     "nbytes and owner are valid only with an address: %.100s has its own size, "
                     "and is itself kept alive",
                     Py_TYPE(array.ptr())->tp_name);
  }
  const auto memory = is_address ? memory_at(array, nbytes, owner) : memory_of(array);
  isthmus_pin_t* pin = nullptr;
  check(without_lock([&] {
    return isthmus_pin_add(device_of(device_object)->raw.get(), memory.pointer, memory.nbytes,
                           only_read || memory.read_only ? 1 : 0, memory.owner, &pin);
  }));
  return nb::cast(new MemoryPin{pin, std::move(device_object)}, nb::rv_policy::take_ownership);
}

isthmus_pin_info_t info_of(const MemoryPin& pin) {
  if (pin.raw == nullptr) {
    raise_python(error_type(ISTHMUS_ERROR_CLOSED), "this pin was released");
  }
  return read_info<isthmus_pin_info_t>(isthmus_pin_info, pin.raw);
}

// Also drops the reference to the owner at once, because the caller may resize that object next.
void release(MemoryPin& self) {
  auto* const raw = std::exchange(self.raw, nullptr);
  if (raw == nullptr || is_forked_child()) {
    return;
  }
  try {
    check(wait_in_slices(-1, [raw](std::int64_t slice) { return isthmus_pin_wait(raw, slice); }));
  } catch (...) {
    self.raw = raw;
    throw;
  }
  {
    const GilRelease released;
    isthmus_pin_remove(raw, 1);
  }
  drain_deferred();
}

}  // namespace

void bind_pin(nb::module_& module) {
  nb::class_<MemoryPin> bound(
      module, "Pin", nb::is_weak_referenceable(),
      "Pinned memory, from isthmus.pin() until release() or the end of `with`.");
  bind_repr(bound, "pin");
  bind_scope<MemoryPin>(bound, &enter_nothing, &release);
  bound
      .def("release", &release,
           "Waits for the copies of the memory that are in flight and unpins it, unless other\n"
           "pins overlap it. A second call does nothing. Dropping a Pin does the same without\n"
           "waiting: the array is kept alive until then.")
      .def_prop_ro(
          "nbytes", [](const MemoryPin& self) { return info_of(self).nbytes; },
          "Number of bytes that were pinned. ClosedError after release(), as for all properties\n"
          "below.")
      .def_prop_ro(
          "ptr",
          [](const MemoryPin& self) {
            return reinterpret_cast<std::uintptr_t>(info_of(self).pointer);
          },
          "The address of the pinned bytes.")
      .def_prop_ro(
          "is_registered", [](const MemoryPin& self) { return info_of(self).is_registered != 0; },
          "False if no registration was needed: the device copies the memory as fast without it,\n"
          "or other code has registered the memory.")
      .def_prop_ro(
          "device",
          [](const MemoryPin& self) {
            static_cast<void>(info_of(self));
            return self.device_object;
          },
          nb::sig("def device(self) -> Device"), "The device that the memory is pinned for.");
  module.def(
      "pin", &pin_memory, nb::arg("array").none(), nb::arg("nbytes") = nb::none(), nb::kw_only(),
      nb::arg("device") = nb::none(), nb::arg("read_only").none() = false,
      nb::arg("owner") = nb::none(),
      nb::sig("def pin(array: object, nbytes: ByteCount | None = None, *, device: Device | str | "
              "None = "
              "None, read_only: bool = False, owner: object = None) -> Pin"),
      "Pins host memory for `device` (None: the current one), which from then on copies it at\n"
      "the speed of the bus, and asynchronously if requested. Returns a Pin, which keeps the\n"
      "memory alive.\n\n"
      "`array`: any contiguous object with the buffer protocol, or an address, with `nbytes` and\n"
      "optionally the `owner` that keeps it alive. Memory that needs no pinning (memory of host\n"
      "kind, or a device that works on host memory) is accepted too. Memory that overlaps pinned\n"
      "memory shares the registration. With `read_only`, or a read-only array, the memory is only\n"
      "read. Pinning takes 25 to 115 ms a GiB with CUDA, and unpinning as much: it pays off for\n"
      "memory that is copied several times. Raises InvalidArgumentError for device memory and for\n"
      "addresses that are not memory.");
}

}  // namespace isthmus::python
