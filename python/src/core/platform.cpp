// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/bindings.hpp"
#include "core/device_search.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/objects.hpp"

namespace isthmus::python {
namespace {

isthmus_platform_info_t platform_info(const Platform& platform) {
  return read_info<isthmus_platform_info_t>(isthmus_platform_info, platform.raw.get());
}

std::vector<DeviceHandle> devices_of(const Platform& platform) {
  std::vector<DeviceHandle> found(platform_info(platform).device_count);
  for (std::size_t i = 0; i < found.size(); ++i) {
    check(isthmus_platform_device(platform.raw.get(), i, found[i].out()));
  }
  return found;
}

nb::list device_list(const Platform& platform) {
  nb::list listed;
  for (auto& found : devices_of(platform)) {
    listed.append(wrap(std::move(found)));
  }
  return listed;
}

std::vector<Platform> all_platforms() {
  prepare_drivers(nullptr);
  std::size_t count = 0;
  check(without_lock([&] { return isthmus_platform_count(&count); }));
  std::vector<Platform> found(count);
  for (std::size_t i = 0; i < count; ++i) {
    check(isthmus_platform_get(i, found[i].raw.out()));
  }
  return found;
}

// The parts of a filter, each of which may be missing: backend, type, number.
struct ParsedFilter {
  std::string backend, type, number;
};

bool is_type(std::string_view component) {
  return component == "cpu" || component == "gpu" || component == "accelerator";
}

ParsedFilter parse_filter(std::string_view text) {
  ParsedFilter parsed;
  while (!text.empty()) {
    const auto colon = text.find(':');
    const auto component = text.substr(0, colon);
    auto& field = is_type(component)                                            ? parsed.type
                  : component.find_first_not_of("0123456789") == component.npos ? parsed.number
                                                                                : parsed.backend;
    field = component;
    text = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  }
  return parsed;
}

const char* type_name(isthmus_device_type_t type) {
  switch (type) {
    case ISTHMUS_DEVICE_CPU: return "cpu";
    case ISTHMUS_DEVICE_GPU: return "gpu";
    default: return "accelerator";
  }
}

bool fits(const ParsedFilter& filter, const isthmus_device_info_t& info) {
  return (filter.backend.empty() || filter.backend == info.backend) &&
         (filter.type.empty() || filter.type == type_name(info.type)) &&
         (filter.backend == "sim" || std::strcmp(info.backend, "sim") != 0 ||
          std::getenv("ISTHMUS_SIM") != nullptr);
}

// Returns an empty handle if no device matches. Throws for a malformed filter.
DeviceHandle try_find(const char* filter) {
  DeviceHandle found;
  const auto status = try_find_device(filter, found);
  if (status != ISTHMUS_ERROR_NOT_FOUND) {
    check(status);
  }
  return found;
}

nb::list find_devices(nb::handle filter_argument) {
  nb::list listed;
  const char* filter = filter_argument.is_none() ? nullptr : nb::cast<const char*>(filter_argument);
  auto best = try_find(filter);
  if (!best && filter == nullptr) {
    best = try_find("host");  // ISTHMUS_DEVICE names no existing device
  }
  if (!best) {
    return listed;
  }
  const auto parsed = parse_filter(filter == nullptr ? "" : filter);
  const nb::object first = wrap(std::move(best));
  listed.append(first);
  if (!parsed.number.empty()) {
    return listed;
  }
  for (const auto& platform : all_platforms()) {
    for (auto& found : devices_of(platform)) {
      const bool listed_too = fits(parsed, info_of(found.get()));
      nb::object object = listed_too ? wrap(std::move(found)) : nb::object{};
      if (listed_too && !object.equal(first)) {
        listed.append(object);
      }
    }
  }
  return listed;
}

nb::list list_platforms() {
  nb::list listed;
  for (auto& found : all_platforms()) {
    listed.append(wrap(std::move(found.raw)));
  }
  return listed;
}

nb::list list_absent() {
  static_cast<void>(all_platforms());
  std::size_t count = 0;
  check(isthmus_absent_driver_count(&count));
  nb::list listed;
  for (std::size_t i = 0; i < count; ++i) {
    const auto info = read_info<isthmus_absent_driver_info_t>(isthmus_absent_driver_info, i);
    listed.append(nb::make_tuple(info.backend, info.reason));
  }
  return listed;
}

template <const char* isthmus_platform_info_t::*Field>
const char* text_of(const Platform& self) {
  return platform_info(self).*Field;
}

}  // namespace

void bind_platform(nb::module_& module) {
  using Info = isthmus_platform_info_t;
  nb::class_<Platform> bound(
      module, "Platform",
      "One vendor's driver, or the host. Listed by platforms(). Immutable; safe to use from\n"
      "any thread.");
  types.platform = bound;
  bind_repr(bound, "platform");
  bound
      .def_prop_ro("backend", &text_of<&Info::backend>,
                   "\"host\", \"sim\", \"cuda\", \"opencl\" or \"sycl\".")
      .def_prop_ro("name", &text_of<&Info::name>, "The driver's name.")
      .def_prop_ro("vendor", &text_of<&Info::vendor>, "The driver's vendor.")
      .def_prop_ro("version", &text_of<&Info::version>, "The driver's version.")
      .def_prop_ro("library", &text_of<&Info::library>,
                   "The driver file that was opened, or an empty string.")
      .def_prop_ro("devices", &device_list, nb::sig("def devices(self) -> list[Device]"),
                   "Its devices.");
  module.def("platforms", &list_platforms, nb::sig("def platforms() -> list[Platform]"),
             "Every platform found. Opens every driver on the first call.");
  module.def(
      "devices", &find_devices, nb::arg("filter") = nb::none(),
      nb::sig("def devices(filter: str | None = None) -> list[Device]"),
      "Every device that matches `filter`, the best one first; None: all of them. An empty list\n"
      "if there is none. Simulated devices are listed only if the environment variable\n"
      "ISTHMUS_SIM is set. SYCL devices are listed only if the filter names them, if dpctl is\n"
      "imported, or if no other device except the host has USM. Opens drivers on the first\n"
      "call. Raises ValueError for a malformed filter.");
  module.def(
      "absent", &list_absent, nb::sig("def absent() -> list[tuple[str, str]]"),
      "(backend, reason) of each driver that is absent or unusable. Opens every driver on the\n"
      "first call.");
}

}  // namespace isthmus::python
