#include "current.hpp"

#include <cstring>

#include "context_stack.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus::python {
namespace {

context_stack current_stack;  // of Queue and Device

// Default queues that were asked for by filter. Simulated devices are left out: they come and go.
PyObject* queue_by_filter = nullptr;

device_handle find_device(const char* filter) {
  before_drivers(filter);
  device_handle found;
  isthmus_status_t status;
  {
    const gil_release released;
    status = isthmus_device_find(filter, found.out());
  }
  check(status);
  return found;
}

const char* filter_text(nb::handle filter) {
  const char* text = PyUnicode_AsUTF8(filter.ptr());
  if (text == nullptr) {
    raise_set();
  }
  return text;
}

// The process's default queue. The library looks it up quickly once it was chosen.
nb::object default_queue() {
  static bool drivers_opened = false;
  before_drivers(nullptr);
  queue_handle found;
  isthmus_status_t status;
  {
    const gil_release released{!drivers_opened};
    status = isthmus_queue_default(nullptr, found.out());
  }
  check(status);
  drivers_opened = true;
  return wrap(std::move(found));
}

nb::object queue_for_filter(nb::handle filter) {
  if (PyObject* cached = PyDict_GetItemWithError(queue_by_filter, filter.ptr())) {
    return nb::borrow(cached);
  }
  if (PyErr_Occurred() != nullptr) {
    raise_set();
  }
  nb::object of = wrap(find_device(filter_text(filter)));
  nb::object found = default_queue_of(*device_of(of));
  if (std::strcmp(info_of(*device_of(of)).backend, "sim") != 0 &&
      PyDict_SetItem(queue_by_filter, filter.ptr(), found.ptr()) != 0) {
    raise_set();
  }
  return found;
}

void require_device_of(nb::handle queue, nb::handle device) {
  const nb::object wanted = to_device(device);
  const nb::object& has = queue_of(queue)->device_object;
  if (!has.equal(wanted)) {
    raise_python(PyExc_ValueError, "queue and device do not belong together: %R is not on %R",
                 queue.ptr(), wanted.ptr());
  }
}

bool given(nb::handle argument) { return argument.is_valid() && !argument.is_none(); }

}  // namespace

void before_drivers(const char* filter) {
  static bool prepared = false;
  // The host is always there. Any other look-up may fail, and then opens every driver.
  const bool opens_none = filter != nullptr && std::strcmp(filter, "host") == 0;
  if (prepared || opens_none) {
    return;
  }
  nb::module_::import_("isthmus._drivers").attr("prepare")();
  prepared = true;
}

nb::object default_queue_of(const device& of) {
  queue_handle found;
  check(isthmus_queue_default(of.raw.get(), found.out()));
  return wrap(std::move(found));
}

nb::object to_device(nb::handle wanted) {
  if (!given(wanted)) {
    return current_device();
  }
  if (device_of(wanted) != nullptr) {
    return nb::borrow(wanted);
  }
  if (PyUnicode_Check(wanted.ptr()) == 0) {
    raise_python(PyExc_TypeError, "device must be a Device, a filter string or None, not %.100s",
                 Py_TYPE(wanted.ptr())->tp_name);
  }
  return wrap(find_device(filter_text(wanted)));
}

nb::object to_queue(nb::handle wanted, nb::handle device) {
  if (given(wanted)) {
    if (queue_of(wanted) == nullptr) {
      raise_python(PyExc_TypeError, "queue must be a Queue or None, not %.100s",
                   Py_TYPE(wanted.ptr())->tp_name);
    }
    if (given(device)) {
      require_device_of(wanted, device);
    }
    return nb::borrow(wanted);
  }
  if (!given(device)) {
    return current_queue();
  }
  if (PyUnicode_CheckExact(device.ptr())) {
    return queue_for_filter(device);
  }
  const nb::object named = to_device(device);
  return default_queue_of(*device_of(named));
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
    raise_python(PyExc_TypeError, "a Device or Queue is needed, not %.100s",
                 Py_TYPE(entry.ptr())->tp_name);
  }
  current_stack.push(entry);
}

void leave_current(nb::handle entry) { current_stack.pop(entry, "devices and queues"); }

void bind_current(nb::module_& module) {
  current_stack.create("isthmus.current");
  queue_by_filter = PyDict_New();
  if (queue_by_filter == nullptr) {
    raise_set();
  }
  module.def(
      "current_device", &current_device, nb::sig("def current_device() -> Device"),
      "The device that `with device:` or `with queue:` set for this thread and asyncio task,\n"
      "else the default one: the environment variable ISTHMUS_DEVICE, else the best with USM.\n"
      "Opens drivers on the first call. Raises DeviceNotFoundError.");
  module.def("current_queue", &current_queue, nb::sig("def current_queue() -> Queue"),
             "The queue that `with queue:` set for this thread and asyncio task, else the\n"
             "default queue of the current device. Opens drivers on the first call. Raises\n"
             "DeviceNotFoundError.");
}

void forget_current() noexcept { PyDict_Clear(queue_by_filter); }

}  // namespace isthmus::python
