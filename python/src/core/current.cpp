// SPDX-License-Identifier: Apache-2.0
#include "core/current.hpp"

#include <vector>

#include "core/arguments.hpp"
#include "core/context_stack.hpp"
#include "core/device_search.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {
namespace {

ContextStack current_stack;  // of Queue and Device

struct NamedQueue {
  nb::object filter;
  nb::object queue;
};
// A few default queues that were requested by filter. Simulated devices are excluded, because
// programs create and destroy them. Never destroyed.
auto& named_queues = *new std::vector<NamedQueue>;
// The process's default queue. Never changes after it was chosen; never destroyed.
auto& process_queue = *new nb::object;

nb::object default_queue() {
  if (process_queue.is_valid()) {
    return process_queue;
  }
  prepare_drivers(nullptr);
  QueueHandle queue;
  check(without_lock([&] { return isthmus_queue_default(nullptr, queue.out()); }));
  process_queue = wrap(std::move(queue));
  return process_queue;
}

// The cached queue for a filter, as a borrowed reference; not valid if there is none. The
// filter is exactly a str. Identity is compared first, because a string literal of a program is one
// object.
nb::handle find_named_queue(nb::handle filter) noexcept {
  for (const auto& each : named_queues) {
    if (each.filter.is(filter)) {
      return each.queue;
    }
  }
  for (const auto& each : named_queues) {
    if (PyUnicode_Compare(each.filter.ptr(), filter.ptr()) == 0) {
      return each.queue;
    }
  }
  return {};
}

nb::object queue_for_filter(nb::handle filter) {
  if (const auto named = find_named_queue(filter); named.is_valid()) {
    return nb::borrow(named);
  }
  nb::object device = wrap(find_device(utf8_of(filter)));
  nb::object queue = default_queue_of(*device_of(device));
  if (!is_temporary(*device_of(device))) {
    named_queues.push_back({nb::borrow(filter), queue});
  }
  return queue;
}

nb::object queue_for(nb::handle device) {
  if (PyUnicode_CheckExact(device.ptr())) {
    return queue_for_filter(device);
  }
  const auto* device_ref = device_of(device);
  return default_queue_of(device_ref != nullptr ? *device_ref : *device_of(to_device(device)));
}

// Whether the queue is known to be on that device without a search.
bool is_on_device(const Queue& queue, nb::handle device) {
  if (!PyUnicode_CheckExact(device.ptr())) {
    const auto* device_ref = device_of(device);
    return device_ref != nullptr && device_ref->key == queue.device_key;
  }
  const auto named = find_named_queue(device);
  return named.is_valid() && nb::inst_ptr<Queue>(named)->device_key == queue.device_key;
}

void require_device_of(nb::handle queue, nb::handle device) {
  const auto& queue_ref = *queue_of(queue);
  if (is_on_device(queue_ref, device)) {
    return;
  }
  const nb::object device_object = to_device(device);
  if (device_of(device_object)->key != queue_ref.device_key) {
    raise_python(PyExc_ValueError, "queue and device do not match: %R is not on %R", queue.ptr(),
                 device_object.ptr());
  }
}

}  // namespace

nb::object default_queue_of(const Device& device) {
  if (device.default_queue.is_valid()) {
    return device.default_queue;
  }
  nb::object object = wrap(make_handle<QueueHandle>(isthmus_queue_default, device.raw.get()));
  if (!is_temporary(device)) {
    device.default_queue = object;
  }
  return object;
}

const Context* context_or_none(nb::handle argument) {
  const auto* found = context_of(argument);
  if (found == nullptr && !argument.is_none()) {
    raise_wrong_type(argument, "context must be a Context or None");
  }
  return found;
}

nb::object first_device_of(const Context& context) {
  return wrap(make_handle<DeviceHandle>(isthmus_context_device, context.raw.get(), std::size_t{0}));
}

nb::object queue_in_context(const Device& device, const Context& context) {
  const auto default_context =
      make_handle<ContextHandle>(isthmus_context_default, device.raw.get());
  if (isthmus_context_key(default_context.get()) == isthmus_context_key(context.raw.get())) {
    return default_queue_of(device);
  }
  return wrap(make_handle<QueueHandle>(isthmus_queue_create, context.raw.get(), device.raw.get()));
}

nb::object to_device(nb::handle argument) {
  if (!has_value(argument)) {
    return current_device();
  }
  if (device_of(argument) != nullptr) {
    return nb::borrow(argument);
  }
  if (PyUnicode_Check(argument.ptr()) == 0) {
    nb::object adopted = find_sycl_device(argument);
    if (!adopted.is_valid()) {
      raise_wrong_type(argument,
                       "device must be a Device, a dpctl device, a filter string or None");
    }
    return adopted;
  }
  return wrap(find_device(utf8_of(argument)));
}

namespace {

// Converts a Queue or a dpctl queue to a Queue.
nb::object require_queue(nb::handle argument) {
  if (queue_of(argument) != nullptr) {
    return nb::borrow(argument);
  }
  nb::object adopted = find_sycl_queue(argument);
  if (!adopted.is_valid()) {
    raise_wrong_type(argument, "queue must be a Queue, a dpctl queue or None");
  }
  return adopted;
}

}  // namespace

isthmus_queue_t* raw_queue(nb::handle queue, nb::object& holder) {
  if (!has_value(queue)) {
    return nullptr;
  }
  holder = require_queue(queue);
  return queue_of(holder)->raw.get();
}

nb::object to_queue(nb::handle argument, nb::handle device) {
  if (!has_value(argument)) {
    return has_value(device) ? queue_for(device) : current_queue();
  }
  nb::object queue = require_queue(argument);
  if (has_value(device)) {
    require_device_of(queue, device);
  }
  return queue;
}

nb::object current_queue() {
  nb::object entry = current_stack.top();
  if (entry.is_none()) {
    return default_queue();
  }
  const auto* device = device_of(entry);
  return device != nullptr ? default_queue_of(*device) : entry;
}

nb::object current_device() {
  nb::object entry = current_stack.top();
  if (entry.is_none()) {
    return wrap(find_device(nullptr));
  }
  const auto* queue = queue_of(entry);
  return queue != nullptr ? queue->device_object : entry;
}

void enter_current(nb::handle entry) {
  if (queue_of(entry) == nullptr && device_of(entry) == nullptr) {
    raise_wrong_type(entry, "expected a Device or Queue");
  }
  current_stack.push(entry);
}

void leave_current(nb::handle entry) { current_stack.pop(entry, "devices and queues"); }

void bind_current(nb::module_& module) {
  current_stack.create("isthmus.current");
  module.def(
      "current_device", &current_device, nb::sig("def current_device() -> Device"),
      "The device that `with device:` or `with queue:` set for this thread and asyncio task,\n"
      "else the default one: the environment variable ISTHMUS_DEVICE, else the best device with\n"
      "USM. Opens drivers on the first call. Raises DeviceNotFoundError.");
  module.def("current_queue", &current_queue, nb::sig("def current_queue() -> Queue"),
             "The queue that `with queue:` set for this thread and asyncio task, else the\n"
             "default queue of the current device. Opens drivers on the first call. Raises\n"
             "DeviceNotFoundError.");
}

void clear_current() noexcept {
  named_queues.clear();
  process_queue.reset();
}

}  // namespace isthmus::python
