// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

#include <cstring>
#include <unordered_map>

#include "array_pools.hpp"
#include "current.hpp"
#include "errors.hpp"

namespace isthmus::python {

bound_types types;

namespace {

// The Python object of each handle. Entries are borrowed: an object's destructor removes its own.
template <class Wrapper, class Raw>
class identity_map {
 public:
  struct entry {
    PyObject* object;
    const Wrapper* wrapper;
  };

  // An object without references whose destructor has not run yet counts as absent.
  [[nodiscard]] nb::object find(Raw* raw) const {
    const auto found = entries_.find(raw);
    if (found == entries_.end() || Py_REFCNT(found->second.object) <= 0) {
      return {};
    }
    return nb::borrow(found->second.object);
  }
  void put(Raw* raw, nb::handle object, const Wrapper* wrapper) {
    entries_.insert_or_assign(raw, entry{object.ptr(), wrapper});
  }
  void forget(Raw* raw, const Wrapper* wrapper) noexcept {
    const auto found = entries_.find(raw);
    if (found != entries_.end() && found->second.wrapper == wrapper) {
      entries_.erase(found);
    }
  }

 private:
  std::unordered_map<Raw*, entry> entries_;
};

// Never destroyed: objects may be destroyed after static destructors ran.
auto& devices = *new identity_map<device, isthmus_device_t>;
auto& contexts = *new identity_map<context, isthmus_context_t>;
auto& queues = *new identity_map<queue, isthmus_queue_t>;
auto& resources = *new identity_map<known_resource, isthmus_resource_t>;

template <class Wrapper, class Raw>
nb::object wrap_once(identity_map<Wrapper, Raw>& known, nb::handle type,
                     counted_handle<Raw> handle) {
  auto* raw = handle.get();
  nb::object found = known.find(raw);
  if (!found.is_valid()) {
    found = make_instance<Wrapper>(type, std::move(handle));
    known.put(raw, found, nb::inst_ptr<Wrapper>(found));
  }
  return found;
}

}  // namespace

std::uintptr_t device_key_of(isthmus_device_t* raw) noexcept {
  const void* native = isthmus_device_native(raw);
  return reinterpret_cast<std::uintptr_t>(native != nullptr ? native : raw);
}

device::device(device_handle owned) : raw{std::move(owned)}, key{device_key_of(raw.get())} {}
device::~device() {
  devices.forget(raw.get(), this);
  if (pools && comes_and_goes(*this)) {
    pools->trim();  // the memory may never be requested again
  }
}

context::context(context_handle owned) : raw{std::move(owned)} {}
context::~context() { contexts.forget(raw.get(), this); }

queue::queue(queue_handle owned) : raw{std::move(owned)} {
  device_object = wrap(device_handle::retained(isthmus_queue_device(raw.get())));
  context_object = wrap(context_handle::retained(isthmus_queue_context(raw.get())));
  device_key = device_of(device_object)->key;
  context_key = isthmus_context_key(isthmus_queue_context(raw.get()));
  const auto where = info_of(*device_of(device_object));
  on_host = std::strcmp(where.backend, "host") == 0;
  // CUDA accepts work that waits for the host, but blocks a thread that copies to or from memory
  // which CUDA does not know.
  submits_at_once = (where.capabilities & ISTHMUS_CAN_WAIT_FOR_HOST) != 0 &&
                    std::strcmp(where.backend, "cuda") != 0;
}
queue::~queue() { queues.forget(raw.get(), this); }

known_resource::~known_resource() {
  if (raw_ != nullptr) {
    resources.forget(raw_, this);
  }
}

void remember_resource(resource& made, nb::handle object) {
  made.known = known_resource{made.raw.get()};
  resources.put(made.raw.get(), object, &made.known);
}

nb::object find_resource(isthmus_resource_t* raw) { return resources.find(raw); }

nb::object wrap(platform_handle raw) {
  return make_instance<platform>(types.platform, std::move(raw));
}
nb::object wrap(device_handle raw) { return wrap_once(devices, types.device, std::move(raw)); }
nb::object wrap(context_handle raw) { return wrap_once(contexts, types.context, std::move(raw)); }
nb::object wrap(queue_handle raw) { return wrap_once(queues, types.queue, std::move(raw)); }
nb::object wrap(event_handle raw) { return make_instance<event>(types.event, std::move(raw)); }

isthmus_device_info_t info_of(isthmus_device_t* raw) {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_device_info(raw, &info));
  return info;
}
isthmus_device_info_t info_of(const device& of) { return info_of(of.raw.get()); }

std::string describe(const device& of) { return info_of(of).filter; }

}  // namespace isthmus::python
