// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of the module's classes, and the map from library handles to Python objects.
//
// A handle has at most one Python object at a time: reading the queue of a buffer twice returns the
// same object. Everything here is guarded by the interpreter's lock.

#include "common.hpp"
#include "gil.hpp"

#include <memory>
#include <string>

namespace isthmus::python {

class DevicePools;

// A library reference that a Python object owns. It is released without the interpreter's lock:
// after the last release the driver frees its object, and may wait for the device.
template <class Noun>
class OwnedHandle : public CountedHandle<Noun> {
 public:
  OwnedHandle() noexcept = default;
  OwnedHandle(CountedHandle<Noun>&& owned) noexcept : CountedHandle<Noun>{std::move(owned)} {}
  OwnedHandle(OwnedHandle&&) noexcept = default;
  OwnedHandle& operator=(OwnedHandle&&) noexcept = default;
  ~OwnedHandle() {
    if (auto* const raw = this->detach()) {
      const HeldGilRelease released;
      Counted<Noun>::release(raw);
    }
  }
};

struct Platform {
  PlatformHandle raw;
};

struct Device {
  explicit Device(DeviceHandle owned);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  OwnedHandle<isthmus_device_t> raw;
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
  OwnedHandle<isthmus_context_t> raw;
};

struct Queue {
  explicit Queue(QueueHandle owned);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  OwnedHandle<isthmus_queue_t> raw;
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
  ~Event() { Py_XDECREF(exception); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  EventHandle raw;
  PyObject* exception = nullptr;  // raised by a function submitted to a queue
};

// The entry of a resource in the table that maps handles to objects. Removed with this object.
class RegisteredResource {
 public:
  RegisteredResource() noexcept = default;
  explicit RegisteredResource(isthmus_resource_t* raw) noexcept : raw_{raw} {}
  RegisteredResource(RegisteredResource&& other) noexcept
      : raw_{std::exchange(other.raw_, nullptr)} {}
  RegisteredResource& operator=(RegisteredResource&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~RegisteredResource();

 private:
  isthmus_resource_t* raw_ = nullptr;
};

// The use of a default pool: see isthmus_default_pool.
enum class PoolUse : std::uint8_t { arrays, buffers };

struct Resource {
  OwnedHandle<isthmus_resource_t> raw;
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  nb::object queue_object;    // used if no queue is named
  bool has_upstream = false;  // the memory may be of another kind than `kind`
  bool is_pool = false;
  bool is_pool_over = false;  // a pool whose upstream may be a Python object
  RegisteredResource
      registration{};  // removed here, before `raw` can be reused for another resource
};
struct ProviderResource : Resource {};
struct PoolResource : Resource {
  std::uint64_t limit_bytes = 0;  // 0: no limit, as in the options
  std::uint64_t soft_limit_bytes = 0;
  nb::object budget_object;  // None if there is no budget
  nb::object decay;          // in seconds, as passed
  nb::object wait;           // the same
  nb::object upstream;       // None: the driver
};
struct CustomResource : Resource {
  nb::object allocator;
};
struct AdaptorResource : Resource {
  nb::object upstream;
};
struct FailureCallbackResource : AdaptorResource {};

// The bound classes, for type checks and for creating instances. Borrowed; they live as long as the
// module.
struct BoundTypes {
  nb::handle platform, device, context, queue, event, resource, budget, buffer, unified;
  nb::handle memory[4];  // by kind; [0] is their common base
  nb::handle typed_array;
};
extern BoundTypes types;

[[nodiscard]] nb::object wrap(PlatformHandle raw);
[[nodiscard]] nb::object wrap(DeviceHandle raw);
[[nodiscard]] nb::object wrap(ContextHandle raw);
[[nodiscard]] nb::object wrap(QueueHandle raw);
[[nodiscard]] nb::object wrap(EventHandle raw);

// The Python object that created the library's resource; not valid once that object is destroyed.
[[nodiscard]] nb::object find_resource(isthmus_resource_t* raw);
void register_resource(Resource& resource, nb::handle object);
// Moves `resource` into the storage that nanobind allocated for `self`, and registers it.
template <class Resource>
void construct_resource(Resource* self, Resource resource) {
  new (self) Resource(std::move(resource));
  register_resource(*self, nb::find(self));
}

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
[[nodiscard]] isthmus_device_info_t info_of(const Device& device);
[[nodiscard]] isthmus_device_info_t info_of(isthmus_device_t* raw);
[[nodiscard]] std::string describe(const Device& device);

void bind_platform(nb::module_& module);
void bind_device(nb::module_& module);
void bind_context(nb::module_& module);
void bind_queue(nb::module_& module);
void bind_event(nb::module_& module);
void bind_budget(nb::module_& module);
void bind_resource(nb::module_& module);
void bind_oom_callbacks(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_ranges(nb::module_& module);
void bind_nd(nb::module_& module);
void bind_numpy_items(nb::module_& module);
void bind_buffer(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_dpctl(nb::module_& module);
void bind_typed_array(nb::module_& module);
void bind_array_make(nb::module_& module);
void bind_allocation_scopes(nb::module_& module);
void bind_ipc(nb::module_& module);
void bind_pin(nb::module_& module);
void bind_unified(nb::module_& module);
void bind_sim(nb::module_& module);
void bind_c_api(nb::module_& module);

}  // namespace isthmus::python
