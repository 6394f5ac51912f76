// SPDX-License-Identifier: Apache-2.0
#include "core/device_search.hpp"

#include <cstring>

#include "core/errors.hpp"
#include "core/gil.hpp"

namespace isthmus::python {

void prepare_drivers(const char* filter) {
  static bool prepared = false;
  // The search for "host" always succeeds. Any other search may fail, and then opens every driver.
  const bool opens_none = filter != nullptr && std::strcmp(filter, "host") == 0;
  if (prepared || opens_none) {
    return;
  }
  // Passed to the library directly, because child processes would inherit environment variables.
  const nb::object libraries = nb::module_::import_("isthmus._drivers").attr("libraries")();
  for (const nb::handle each : libraries) {
    check(isthmus_driver_library(nb::cast<const char*>(each[0]), nb::cast<const char*>(each[1])));
  }
  prepared = true;
}

isthmus_status_t try_find_device(const char* filter, DeviceHandle& device) {
  prepare_drivers(filter);
  const GilRelease released;
  return isthmus_device_find(filter, device.out());
}

DeviceHandle find_device(const char* filter) {
  DeviceHandle device;
  check(try_find_device(filter, device));
  return device;
}

}  // namespace isthmus::python
