// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of the module's classes, and the map from library handles to Python objects.
//
// A handle has at most one Python object at a time: reading the queue of a buffer twice returns the
// same object. Everything here is guarded by the interpreter's lock.

#include "core/common.hpp"
#include "core/owned_handle.hpp"

#include <memory>
#include <string>

namespace isthmus::python {

class DevicePools;

struct Platform {
  PlatformHandle raw;
};

struct Device {
  explicit Device(DeviceHandle owned);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  OwnedHandle<DeviceHandle> raw;
  std::uintptr_t key;  // the result of `device_key_of`
  // Set on first use; never changes. Not set for simulated devices, which programs create and
  // destroy, because a queue keeps its device alive.
  mutable nb::object default_queue;
  std::unique_ptr<DevicePools> pools;  // null before the first array or buffer
};

struct Context {
  explicit Context(ContextHandle owned);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  OwnedHandle<ContextHandle> raw;
};

struct Queue {
  explicit Queue(QueueHandle owned);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  OwnedHandle<QueueHandle> raw;
  nb::object device_object;
  nb::object context_object;
  std::uintptr_t device_key;  // the keys of device and context
  std::uintptr_t context_key;
  // Whether the queue is of the host backend, whose allocations and small copies are too short to
  // release the lock.
  bool is_on_host;
  // If false, a submission that has to wait for the host waits within the call, without the lock.
  bool submits_at_once;
};

struct Event {
  explicit Event(EventHandle owned) noexcept : raw{std::move(owned)} {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  EventHandle raw;
  // The exception that a function submitted to a queue raised, and that function.
  PyObject* exception = nullptr;
  PyObject* function = nullptr;
  mutable bool is_retrieved = false;  // whether the program has received the exception
};

// The bound classes, for type checks and for creating instances. Borrowed; they live as long as the
// module.
struct BoundTypes {
  nb::handle platform, device, context, queue, event, resource, budget, buffer, unified;
  nb::handle memory[4];  // by kind; [0] is their common base
  nb::handle typed_array;
};
extern ISTHMUS_EXPORTED BoundTypes types;

[[nodiscard]] nb::object wrap(PlatformHandle raw);
[[nodiscard]] ISTHMUS_EXPORTED nb::object wrap(DeviceHandle raw);
[[nodiscard]] nb::object wrap(ContextHandle raw);
[[nodiscard]] ISTHMUS_EXPORTED nb::object wrap(QueueHandle raw);
[[nodiscard]] nb::object wrap(EventHandle raw);

[[nodiscard]] inline Device* device_of(nb::handle object) noexcept {
  return instance_of<Device>(types.device, object);
}
[[nodiscard]] inline Context* context_of(nb::handle object) noexcept {
  return instance_of<Context>(types.context, object);
}
[[nodiscard]] inline Queue* queue_of(nb::handle object) noexcept {
  return instance_of<Queue>(types.queue, object);
}
// Exports the driver's handle of a CUDA, OpenCL or SYCL queue; null for other backends. Throws the
// library's error if it cannot export the handle now.
[[nodiscard]] void* export_handle(const Queue& queue);
[[nodiscard]] inline Event* event_of(nb::handle object) noexcept {
  return instance_of<Event>(types.event, object);
}

// A key that is equal for two handles of the same device of a driver.
[[nodiscard]] std::uintptr_t device_key_of(isthmus_device_t* raw) noexcept;
// Whether the device is simulated: it then cannot be found again once its objects are destroyed.
[[nodiscard]] bool is_temporary(const Device& device);
[[nodiscard]] isthmus_device_info_t info_of(const Device& device);
[[nodiscard]] isthmus_device_info_t info_of(isthmus_device_t* raw);
[[nodiscard]] isthmus_context_info_t info_of(const Context& context);
[[nodiscard]] isthmus_queue_info_t info_of(isthmus_queue_t* raw);
[[nodiscard]] isthmus_event_info_t info_of(const Event& event);
[[nodiscard]] std::string describe(const Device& device);

}  // namespace isthmus::python
