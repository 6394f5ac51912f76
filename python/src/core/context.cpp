// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/arguments.hpp"
#include "core/bindings.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/objects.hpp"
#include "core/owners.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {
namespace {

// Converts a Device, a filter string or a list of these. The objects keep the handles alive.
std::vector<nb::object> to_devices(nb::handle argument) {
  std::vector<nb::object> objects;
  if (PyList_Check(argument.ptr()) != 0 || PyTuple_Check(argument.ptr()) != 0) {
    for (nb::handle each : argument) {
      objects.push_back(to_device(each));
    }
  } else {
    objects.push_back(to_device(argument));
  }
  return objects;
}

void init_context(Context* self, nb::handle devices) {
  const auto objects = to_devices(devices);
  std::vector<isthmus_device_t*> raw;
  for (const auto& each : objects) {
    raw.push_back(device_of(each)->raw.get());
  }
  new (self) Context{make_handle<ContextHandle>(isthmus_context_create, raw.data(), raw.size())};
}

nb::object from_handle(nb::handle handle, nb::handle device, nb::handle owner) {
  void* native = to_pointer(handle, "handle");
  const nb::object device_object = to_device(device);
  return wrap(make_handle<ContextHandle>(isthmus_context_adopt, device_of(device_object)->raw.get(),
                                         native, keep_alive(owner)));
}

nb::object share_with(const Context& self, nb::handle argument) {
  const nb::object device_object = to_device(argument);
  return wrap(make_handle<ContextHandle>(isthmus_context_share, self.raw.get(),
                                         device_of(device_object)->raw.get()));
}

nb::list devices_of(const Context& self) {
  nb::list listed;
  const auto count = info_of(self).device_count;
  for (std::size_t i = 0; i < count; ++i) {
    listed.append(wrap(make_handle<DeviceHandle>(isthmus_context_device, self.raw.get(), i)));
  }
  return listed;
}

std::uintptr_t key_of(const Context& context) { return isthmus_context_key(context.raw.get()); }

}  // namespace

void bind_context(nb::module_& module) {
  nb::class_<Context> bound(
      module, "Context", nb::is_weak_referenceable(),
      "A context: Context(devices=None). USM belongs to a context, whose devices can access it.\n\n"
      "`devices`: a Device or filter string or a list of them, of one platform; None: the current\n"
      "device. This creates a new context; Device.default_context is used unless another context\n"
      "is named. Contexts are equal if they represent the same driver context, and may be used\n"
      "from any thread.");
  types.context = bound;
  bind_from_sycl(bound, &find_sycl_context, "Context", "def from_sycl(obj: Any) -> Context");
  bind_capsule<Context>(bound);
  bound
      .def(
          "__init__", &init_context, nb::arg("devices") = nb::none(),
          nb::sig("def __init__(self, devices: Device | str | list[Device] | None = None) -> None"))
      .def_static(
          "from_handle", &from_handle, nb::arg("handle").none(), nb::arg("device").none(),
          nb::arg("owner") = nb::none(),
          nb::sig("def from_handle(handle: int, device: Device | str, owner: object = None) "
                  "-> Context"),
          "Adopts a driver's context (OpenCL: cl_context; CUDA: the primary one) of `device`'s\n"
          "platform. It is kept alive by `owner` if passed, else by the driver's own reference\n"
          "count. Raises UnsupportedError where contexts have no handles.")
      .def("share_with", &share_with, nb::arg("device").none() = "opencl",
           nb::sig("def share_with(self, device: Device | str = 'opencl') -> Context"),
           "The same driver context in another backend: a SYCL context on OpenCL as a context of\n"
           "`device`, so that memory of dpctl can be used by pyopencl and Isthmus without a copy\n"
           "(`Buffer.adopt`). Raises UnsupportedError for other backends and where the SYCL\n"
           "library exports no native handles, WrongContextError if `device` is not one of its\n"
           "devices.")
      .def_prop_ro("devices", &devices_of, nb::sig("def devices(self) -> list[Device]"),
                   "Its devices.")
      .def_prop_ro(
          "native_handle",
          [](const Context& self) {
            return reinterpret_cast<std::uintptr_t>(info_of(self).native);
          },
          "The driver's handle as an integer (OpenCL: cl_context), 0 if the driver has none.\n"
          "Valid while this object exists.");
  bind_key<Context>(bound, &key_of, &context_of);
  bind_repr(bound, "context");
}

}  // namespace isthmus::python
