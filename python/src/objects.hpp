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

class device_pools;

// The reference of a Python object. It is released without the interpreter's lock: with the last
// one the driver frees its object, and may wait for the device.
template <class Noun>
class owned_handle : public counted_handle<Noun> {
 public:
  owned_handle() noexcept = default;
  owned_handle(counted_handle<Noun>&& owned) noexcept : counted_handle<Noun>{std::move(owned)} {}
  owned_handle(owned_handle&&) noexcept = default;
  owned_handle& operator=(owned_handle&&) noexcept = default;
  ~owned_handle() {
    if (auto* const raw = this->detach()) {
      const held_gil_release released;
      counted<Noun>::release(raw);
    }
  }
};

struct platform {
  platform_handle raw;
};

struct device {
  explicit device(device_handle owned);
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  owned_handle<isthmus_device_t> raw;
  std::uintptr_t key;  // the result of `device_key_of`
  // Set on first use; never changes. Not set for simulated devices, which come and go: a queue
  // holds its device.
  mutable nb::object default_queue;
  std::unique_ptr<device_pools> pools;  // null before the first array or buffer
};

struct context {
  explicit context(context_handle owned);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  owned_handle<isthmus_context_t> raw;
};

struct queue {
  explicit queue(queue_handle owned);
  ~queue();
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  owned_handle<isthmus_queue_t> raw;
  nb::object device_object;
  nb::object context_object;
  std::uintptr_t device_key;  // the keys of device and context
  std::uintptr_t context_key;
  // Whether it is of the host backend, whose allocations and small copies are too short to release
  // the lock.
  bool on_host;
  // If false, a submission that has to wait for the host waits within the call, without the lock.
  bool submits_at_once;
};

struct event {
  explicit event(event_handle owned) noexcept : raw{std::move(owned)} {}
  ~event() { Py_XDECREF(exception); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  event_handle raw;
  PyObject* exception = nullptr;  // what a function submitted to a queue raised
};

// The entry of a resource in the table that maps handles to objects. Removed with this object.
class known_resource {
 public:
  known_resource() noexcept = default;
  explicit known_resource(isthmus_resource_t* raw) noexcept : raw_{raw} {}
  known_resource(known_resource&& other) noexcept : raw_{std::exchange(other.raw_, nullptr)} {}
  known_resource& operator=(known_resource&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~known_resource();

 private:
  isthmus_resource_t* raw_ = nullptr;
};

// The use of a default pool: see isthmus_default_pool.
enum class pool_use : std::uint8_t { arrays, buffers };

struct resource {
  owned_handle<isthmus_resource_t> raw;
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  nb::object queue_object;        // used if no queue is named
  bool stands_on_others = false;  // it has an upstream, and may give memory of other kinds
  bool is_pool = false;
  bool is_pool_over = false;  // a pool whose upstream may be a Python object
  known_resource known{};     // removed here, before `raw` can be reused for another resource
};
struct provider_resource : resource {};
struct pool_resource : resource {
  std::uint64_t limit_bytes = 0;  // 0: no limit, as in the options
  std::uint64_t soft_limit_bytes = 0;
  nb::object budget_object;  // None if there is no budget
  nb::object decay;          // in seconds, as given
  nb::object wait;           // the same
  nb::object upstream;       // None: the driver
};
struct custom_resource : resource {
  nb::object allocator;
};
struct adaptor_resource : resource {
  nb::object upstream;
};
struct failure_callback_resource : adaptor_resource {};

// The bound classes, for type checks and for creating instances. Borrowed; they live as long as the
// module.
struct bound_types {
  nb::handle platform, device, context, queue, event, resource, budget, buffer, unified;
  nb::handle memory[4];  // by kind; [0] is their common base
  nb::handle typed_array;
};
extern bound_types types;

[[nodiscard]] nb::object wrap(platform_handle raw);
[[nodiscard]] nb::object wrap(device_handle raw);
[[nodiscard]] nb::object wrap(context_handle raw);
[[nodiscard]] nb::object wrap(queue_handle raw);
[[nodiscard]] nb::object wrap(event_handle raw);

// The object that the library's resource was created as; not valid once that object is gone.
[[nodiscard]] nb::object find_resource(isthmus_resource_t* raw);
void remember_resource(resource& made, nb::handle object);
// Constructs it in the object that nanobind allocated for `self`.
template <class Resource>
void construct_resource(Resource* self, Resource made) {
  new (self) Resource(std::move(made));
  remember_resource(*self, nb::find(self));
}

[[nodiscard]] inline device* device_of(nb::handle object) noexcept {
  return instance_of<device>(types.device, object);
}
[[nodiscard]] inline context* context_of(nb::handle object) noexcept {
  return instance_of<context>(types.context, object);
}
[[nodiscard]] inline queue* queue_of(nb::handle object) noexcept {
  return instance_of<queue>(types.queue, object);
}
// Exports the driver's handle of a CUDA, OpenCL or SYCL queue; null for other backends. Raises if
// the library cannot export it now.
[[nodiscard]] void* lend_handle(const queue& of);
[[nodiscard]] inline event* event_of(nb::handle object) noexcept {
  return instance_of<event>(types.event, object);
}

// The same for two handles of one device of a driver.
[[nodiscard]] std::uintptr_t device_key_of(isthmus_device_t* raw) noexcept;
[[nodiscard]] isthmus_device_info_t info_of(const device& of);
[[nodiscard]] isthmus_device_info_t info_of(isthmus_device_t* raw);
[[nodiscard]] std::string describe(const device& of);

void bind_platform(nb::module_& module);
void bind_device(nb::module_& module);
void bind_context(nb::module_& module);
void bind_queue(nb::module_& module);
void bind_event(nb::module_& module);
void bind_budget(nb::module_& module);
void bind_resource(nb::module_& module);
void bind_pressure(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_ranges(nb::module_& module);
void bind_nd(nb::module_& module);
void bind_numpy_items(nb::module_& module);
void bind_buffer(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_dpctl(nb::module_& module);
void bind_typed_array(nb::module_& module);
void bind_array_make(nb::module_& module);
void bind_life_scopes(nb::module_& module);
void bind_ipc(nb::module_& module);
void bind_pin(nb::module_& module);
void bind_unified(nb::module_& module);
void bind_sim(nb::module_& module);
void bind_c_api(nb::module_& module);

}  // namespace isthmus::python
