// SPDX-License-Identifier: Apache-2.0
#include "current.hpp"

#include <cstring>
#include <vector>

#include "arguments.hpp"
#include "context_stack.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {
namespace {

ContextStack current_stack;  // of Queue and Device

struct NamedQueue {
  nb::object filter;
  nb::object queue;
};
// A few default queues that were requested by filter. Simulated devices are excluded, because they
// come and go. Never destroyed, and neither is the next one.
auto& named_queues = *new std::vector<NamedQueue>;
// The process's default queue. It never changes once it was chosen.
auto& process_queue = *new nb::object;

nb::object default_queue() {
  if (process_queue.is_valid()) {
    return process_queue;
  }
  before_drivers(nullptr);
  QueueHandle found;
  isthmus_status_t status;
  {
    const GilRelease released;
    status = isthmus_queue_default(nullptr, found.out());
  }
  check(status);
  process_queue = wrap(std::move(found));
  return process_queue;
}

// Borrowed. Not valid if no queue was requested by that filter, which must be exactly a str. A
// string that is written in a program is one object.
nb::handle known_queue(nb::handle filter) noexcept {
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
  if (const auto known = known_queue(filter); known.is_valid()) {
    return nb::borrow(known);
  }
  nb::object of = wrap(find_device(utf8_of(filter)));
  nb::object found = default_queue_of(*device_of(of));
  if (!comes_and_goes(*device_of(of))) {
    named_queues.push_back({nb::borrow(filter), found});
  }
  return found;
}

nb::object queue_for(nb::handle device) {
  if (PyUnicode_CheckExact(device.ptr())) {
    return queue_for_filter(device);
  }
  const auto* of = device_of(device);
  return default_queue_of(of != nullptr ? *of : *device_of(to_device(device)));
}

// Whether the queue is known to be on that device without a search.
bool is_known_to_be_on(const Queue& queue, nb::handle device) {
  if (!PyUnicode_CheckExact(device.ptr())) {
    const auto* of = device_of(device);
    return of != nullptr && of->key == queue.device_key;
  }
  const auto known = known_queue(device);
  return known.is_valid() && nb::inst_ptr<Queue>(known)->device_key == queue.device_key;
}

void require_device_of(nb::handle queue, nb::handle device) {
  const auto& on = *queue_of(queue);
  if (is_known_to_be_on(on, device)) {
    return;
  }
  const nb::object wanted = to_device(device);
  if (device_of(wanted)->key != on.device_key) {
    raise_python(PyExc_ValueError, "queue and device do not match: %R is not on %R", queue.ptr(),
                 wanted.ptr());
  }
}

}  // namespace

bool comes_and_goes(const Device& device) {
  return std::strcmp(info_of(device).backend, "sim") == 0;
}

void before_drivers(const char* filter) {
  static bool prepared = false;
  // The host is always found. Any other search may fail, and then opens every driver.
  const bool opens_none = filter != nullptr && std::strcmp(filter, "host") == 0;
  if (prepared || opens_none) {
    return;
  }
  // Passed to the library and not through the environment, which child processes inherit.
  const nb::object found = nb::module_::import_("isthmus._drivers").attr("libraries")();
  for (const nb::handle each : found) {
    check(isthmus_driver_library(nb::cast<const char*>(each[0]), nb::cast<const char*>(each[1])));
  }
  prepared = true;
}

isthmus_status_t look_for_device(const char* filter, DeviceHandle& found) {
  before_drivers(filter);
  const GilRelease released;
  return isthmus_device_find(filter, found.out());
}

DeviceHandle find_device(const char* filter) {
  DeviceHandle found;
  check(look_for_device(filter, found));
  return found;
}

nb::object default_queue_of(const Device& device) {
  if (device.default_queue.is_valid()) {
    return device.default_queue;
  }
  QueueHandle found;
  check(isthmus_queue_default(device.raw.get(), found.out()));
  nb::object made = wrap(std::move(found));
  if (!comes_and_goes(device)) {
    device.default_queue = made;
  }
  return made;
}

nb::object to_device(nb::handle wanted) {
  if (!given(wanted)) {
    return current_device();
  }
  if (device_of(wanted) != nullptr) {
    return nb::borrow(wanted);
  }
  if (PyUnicode_Check(wanted.ptr()) == 0) {
    nb::object adopted = find_sycl_device(wanted);
    if (!adopted.is_valid()) {
      raise_python(PyExc_TypeError,
                   "device must be a Device, a dpctl device, a filter string or None, not %.100s",
                   Py_TYPE(wanted.ptr())->tp_name);
    }
    return adopted;
  }
  return wrap(find_device(utf8_of(wanted)));
}

namespace {

// A Queue from a Queue or one of dpctl's.
nb::object require_queue(nb::handle wanted) {
  if (queue_of(wanted) != nullptr) {
    return nb::borrow(wanted);
  }
  nb::object adopted = find_sycl_queue(wanted);
  if (!adopted.is_valid()) {
    raise_python(PyExc_TypeError, "queue must be a Queue, a dpctl queue or None, not %.100s",
                 Py_TYPE(wanted.ptr())->tp_name);
  }
  return adopted;
}

}  // namespace

isthmus_queue_t* raw_queue(nb::handle queue, nb::object& kept) {
  if (!given(queue)) {
    return nullptr;
  }
  kept = require_queue(queue);
  return queue_of(kept)->raw.get();
}

nb::object to_queue(nb::handle wanted, nb::handle device) {
  if (!given(wanted)) {
    return given(device) ? queue_for(device) : current_queue();
  }
  nb::object found = require_queue(wanted);
  if (given(device)) {
    require_device_of(found, device);
  }
  return found;
}

nb::object current_queue() {
  nb::object entry = current_stack.top();
  if (entry.is_none()) {
    return default_queue();
  }
  const auto* on = device_of(entry);
  return on != nullptr ? default_queue_of(*on) : entry;
}

nb::object current_device() {
  nb::object entry = current_stack.top();
  if (entry.is_none()) {
    return wrap(find_device(nullptr));
  }
  const auto* on = queue_of(entry);
  return on != nullptr ? on->device_object : entry;
}

void enter_current(nb::handle entry) {
  if (queue_of(entry) == nullptr && device_of(entry) == nullptr) {
    raise_python(PyExc_TypeError, "expected a Device or Queue, not %.100s",
                 Py_TYPE(entry.ptr())->tp_name);
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

void forget_current() noexcept {
  named_queues.clear();
  process_queue.reset();
}

}  // namespace isthmus::python
