// SPDX-License-Identifier: Apache-2.0
#include "interop/oneapi_numbers.hpp"

#include <cstring>

#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {
namespace {

// dpctl's devices, in order; None for those that Isthmus does not list. Created once: dpctl's list
// does not change.
const nb::list& listed_devices() {
  static const auto* devices = new nb::list;
  if (nb::len(*devices) == 0) {
    nb::list listed;
    for (nb::handle each : loaded_dpctl().attr("get_devices")()) {
      nb::object device = nb::none();
      try {
        device = find_sycl_device(each);
      } catch (nb::python_error& failed) {
        if (!failed.matches(PyExc_ValueError)) {  // a device without USM
          throw;
        }
      }
      listed.append(device);
    }
    devices = new nb::list{std::move(listed)};
  }
  return *devices;
}

bool is_on_default_context(const Queue& queue) {
  const auto default_context = make_handle<ContextHandle>(
      isthmus_context_default, device_of(queue.device_object)->raw.get());
  return isthmus_context_key(default_context.get()) == queue.context_key;
}

}  // namespace

bool is_sycl_queue(const Queue& queue) {
  return std::strcmp(info_of(*device_of(queue.device_object)).backend, "sycl") == 0;
}

int oneapi_number_of(const Queue& queue) {
  if (!is_sycl_queue(queue) || loaded_dpctl().is_none() || !is_on_default_context(queue)) {
    return -1;
  }
  int number = 0;
  for (nb::handle each : listed_devices()) {
    if (each.equal(queue.device_object)) {
      return number;
    }
    ++number;
  }
  return -1;
}

nb::object oneapi_queue(int number) {
  if (loaded_dpctl().is_none() || static_cast<std::size_t>(number) >= nb::len(listed_devices())) {
    return {};
  }
  const nb::object device = listed_devices()[static_cast<std::size_t>(number)];
  return device.is_none() ? nb::object{} : default_queue_of(*device_of(device));
}

}  // namespace isthmus::python
