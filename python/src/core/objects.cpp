// SPDX-License-Identifier: Apache-2.0
#include "core/objects.hpp"

#include <cstring>

#include "core/device_pools.hpp"
#include "core/errors.hpp"
#include "core/identity_map.hpp"

namespace isthmus::python {

BoundTypes types;

namespace {

// Never destroyed: objects may be destroyed after static destructors ran.
auto& devices = *new IdentityMap<Device, isthmus_device_t>;
auto& contexts = *new IdentityMap<Context, isthmus_context_t>;
auto& queues = *new IdentityMap<Queue, isthmus_queue_t>;

template <class Wrapper, class Handle>
nb::object wrap_once(IdentityMap<Wrapper, typename Handle::raw_type>& map, nb::handle type,
                     Handle handle) {
  auto* raw = handle.get();
  nb::object found = map.find(raw);
  if (!found.is_valid()) {
    found = make_instance<Wrapper>(type, std::move(handle));
    map.insert(raw, found, nb::inst_ptr<Wrapper>(found));
  }
  return found;
}

}  // namespace

std::uintptr_t device_key_of(isthmus_device_t* raw) noexcept {
  auto info = sized<isthmus_device_info_t>();
  const void* native = isthmus_device_info(raw, &info) == ISTHMUS_OK ? info.native : nullptr;
  return reinterpret_cast<std::uintptr_t>(native != nullptr ? native : raw);
}

Device::Device(DeviceHandle owned) : raw{std::move(owned)}, key{device_key_of(raw.get())} {}
Device::~Device() {
  devices.erase(raw.get(), this);
  if (pools && is_temporary(*this)) {
    pools->trim();  // the memory may never be requested again
  }
}

Context::Context(ContextHandle owned) : raw{std::move(owned)} {}
Context::~Context() { contexts.erase(raw.get(), this); }

Queue::Queue(QueueHandle owned) : raw{std::move(owned)} {
  const auto queue_info = info_of(raw.get());
  device_object = wrap(DeviceHandle::share(queue_info.device));
  context_object = wrap(ContextHandle::share(queue_info.context));
  device_key = device_of(device_object)->key;
  context_key = isthmus_context_key(queue_info.context);
  const auto info = info_of(*device_of(device_object));
  is_on_host = std::strcmp(info.backend, "host") == 0;
  // CUDA accepts work that waits for the host, but blocks a thread that copies to or from memory
  // that is not registered with CUDA.
  submits_at_once = (info.capabilities & ISTHMUS_CAN_WAIT_FOR_HOST) != 0 &&
                    std::strcmp(info.backend, "cuda") != 0;
}
Queue::~Queue() { queues.erase(raw.get(), this); }

nb::object wrap(PlatformHandle raw) {
  return make_instance<Platform>(types.platform, std::move(raw));
}
nb::object wrap(DeviceHandle raw) { return wrap_once(devices, types.device, std::move(raw)); }
nb::object wrap(ContextHandle raw) { return wrap_once(contexts, types.context, std::move(raw)); }
nb::object wrap(QueueHandle raw) { return wrap_once(queues, types.queue, std::move(raw)); }
nb::object wrap(EventHandle raw) { return make_instance<Event>(types.event, std::move(raw)); }

isthmus_device_info_t info_of(isthmus_device_t* raw) {
  return read_info<isthmus_device_info_t>(isthmus_device_info, raw);
}
isthmus_device_info_t info_of(const Device& device) { return info_of(device.raw.get()); }

isthmus_context_info_t info_of(const Context& context) {
  return read_info<isthmus_context_info_t>(isthmus_context_info, context.raw.get());
}

isthmus_queue_info_t info_of(isthmus_queue_t* raw) {
  return read_info<isthmus_queue_info_t>(isthmus_queue_info, raw);
}

isthmus_event_info_t info_of(const Event& event) {
  return read_info<isthmus_event_info_t>(isthmus_event_info, event.raw.get());
}

bool is_temporary(const Device& device) { return std::strcmp(info_of(device).backend, "sim") == 0; }

std::string describe(const Device& device) { return info_of(device).filter; }

}  // namespace isthmus::python
