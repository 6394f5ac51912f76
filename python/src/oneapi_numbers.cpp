// SPDX-License-Identifier: Apache-2.0
#include "oneapi_numbers.hpp"

#include <cstring>

#include "current.hpp"
#include "errors.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {
namespace {

// dpctl's devices, in order; None for those that Isthmus does not list. Created once: dpctl's list
// does not change.
const nb::list& listed_devices() {
  static const auto* known = new nb::list;
  if (nb::len(*known) == 0) {
    nb::list found;
    for (nb::handle each : loaded_dpctl().attr("get_devices")()) {
      nb::object ours = nb::none();
      try {
        ours = find_sycl_device(each);
      } catch (nb::python_error& failed) {
        if (!failed.matches(PyExc_ValueError)) {  // a device without USM
          throw;
        }
      }
      found.append(ours);
    }
    known = new nb::list{std::move(found)};
  }
  return *known;
}

bool is_on_default_context(const Queue& queue) {
  ContextHandle usual;
  check(isthmus_context_default(device_of(queue.device_object)->raw.get(), usual.out()));
  return isthmus_context_key(usual.get()) == queue.context_key;
}

}  // namespace

bool is_sycls(const Queue& queue) {
  return std::strcmp(info_of(*device_of(queue.device_object)).backend, "sycl") == 0;
}

int oneapi_number_of(const Queue& queue) {
  if (!is_sycls(queue) || loaded_dpctl().is_none() || !is_on_default_context(queue)) {
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
