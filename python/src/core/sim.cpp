// SPDX-License-Identifier: Apache-2.0
// Simulated devices, for isthmus.testing.

#include "core/arguments.hpp"
#include "core/bindings.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/objects.hpp"

namespace isthmus::python {
namespace {

const char* options_text(nb::handle options) {
  return options.is_none() ? nullptr : utf8_of(options);
}

nb::object create(nb::handle options) {
  const char* text = options_text(options);
  DeviceHandle device;
  check(without_lock([&] { return isthmus_sim_create(text, device.out()); }));
  return wrap(std::move(device));
}

void configure(const Device& device, nb::handle options) {
  check(isthmus_sim_configure(device.raw.get(), options_text(options)));
}

std::uint64_t calls(const Device& device, const char* kind) {
  std::uint64_t count = 0;
  check(isthmus_sim_calls(device.raw.get(), kind, &count));
  return count;
}

nb::object state(const Device& device) {
  const auto info = read_info<isthmus_sim_info_t>(isthmus_sim_info, device.raw.get());
  return nb::make_tuple(info.clock_ns, info.device_bytes, info.host_bytes);
}

}  // namespace

void bind_sim(nb::module_& module) {
  module.def("sim_create", &create, nb::arg("options") = nb::none(),
             nb::sig("def sim_create(options: str | None = None) -> Device"),
             "Creates a simulated device on a new platform; `options` as in ISTHMUS_SIM.");
  module.def("sim_configure", &configure, nb::arg("device"), nb::arg("options"),
             nb::sig("def sim_configure(device: Device, options: str) -> None"),
             "Changes the options that can change during the lifetime of the device.");
  module.def(
      "sim_calls", &calls, nb::arg("device"), nb::arg("kind") = "any",
      nb::sig("def sim_calls(device: Device, kind: str = 'any') -> int"),
      "Number of driver calls of one kind so far: \"allocate\", \"copy\", ...; \"any\": all.");
  module.def(
      "sim_state", &state, nb::arg("device"),
      nb::sig("def sim_state(device: Device) -> tuple[int, int, int]"),
      "(virtual time in ns, bytes of device memory, bytes of other memory) of the device now.");
}

}  // namespace isthmus::python
