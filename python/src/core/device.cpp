// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "core/arguments.hpp"
#include "core/bindings.hpp"
#include "core/current.hpp"
#include "core/device_search.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/objects.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {
namespace {

struct Capability {
  std::uint64_t flag;
  const char* name;
};
constexpr Capability k_capabilities[] = {
    {ISTHMUS_CAN_DEVICE_KIND, "device_kind"},
    {ISTHMUS_CAN_SHARED_KIND, "shared_kind"},
    {ISTHMUS_CAN_HOST_KIND, "host_kind"},
    {ISTHMUS_CAN_USM, "usm"},
    {ISTHMUS_CAN_WAIT_FOR_HOST, "wait_for_host"},
    {ISTHMUS_CAN_PREFETCH, "prefetch"},
    {ISTHMUS_CAN_ADVISE, "advise"},
    {ISTHMUS_CAN_PROFILE, "profile"},
    {ISTHMUS_CAN_QUERY_FREE_MEMORY, "query_free_memory"},
    {ISTHMUS_CAN_RUN_FUNCTIONS, "run_functions"},
    {ISTHMUS_CAN_EXPORT_HANDLES, "export_handles"},
    {ISTHMUS_CAN_REMAP, "remap"},
    {ISTHMUS_CAN_WRITE_COMBINE, "write_combine"},
    {ISTHMUS_CAN_IPC, "ipc"},
};

void init_device(Device* self, nb::handle filter) {
  const nb::object found = to_device(filter);
  new (self) Device{DeviceHandle::share(device_of(found)->raw.get())};
}

nb::object capabilities_of(const Device& self) {
  const auto flags = info_of(self).capabilities;
  nb::set named;
  for (const auto& [flag, name] : k_capabilities) {
    if ((flags & flag) != 0) {
      named.add(nb::str(name));
    }
  }
  return nb::steal(PyFrozenSet_New(named.ptr()));
}

nb::object kinds_of(const Device& self) {
  const auto flags = info_of(self).capabilities;
  nb::list named;
  if ((flags & ISTHMUS_CAN_DEVICE_KIND) != 0) named.append(kind_name(ISTHMUS_KIND_DEVICE));
  if ((flags & ISTHMUS_CAN_SHARED_KIND) != 0) named.append(kind_name(ISTHMUS_KIND_SHARED));
  if ((flags & ISTHMUS_CAN_HOST_KIND) != 0) named.append(kind_name(ISTHMUS_KIND_HOST));
  return nb::steal(PyList_AsTuple(named.ptr()));
}

const char* type_of(const Device& self) {
  switch (info_of(self).type) {
    case ISTHMUS_DEVICE_CPU: return "cpu";
    case ISTHMUS_DEVICE_GPU: return "gpu";
    default: return "accelerator";
  }
}

nb::object platform_of(const Device& self) {
  return wrap(PlatformHandle::share(info_of(self).platform));
}

nb::object memory_info(const Device& self) {
  auto info = sized<isthmus_device_memory_info_t>();
  // for a driver call
  check(without_lock([&] { return isthmus_device_memory_info(self.raw.get(), &info); }));
  return nb::make_tuple(info.free_bytes, info.total_bytes);
}

nb::object default_context_of(const Device& self) {
  return wrap(make_handle<ContextHandle>(isthmus_context_default, self.raw.get()));
}

nb::object reduce(nb::pointer_and_handle<Device> self) {
  static PyObject* const load =
      nb::object(nb::module_::import_("isthmus._pickle").attr("load_device")).release().ptr();
  return nb::make_tuple(nb::handle(load), nb::make_tuple(info_of(*self.p).filter));
}

template <auto Field>
auto field_of(const Device& self) {
  return info_of(self).*Field;
}

void bind_properties(nb::class_<Device>& bound) {
  using Info = isthmus_device_info_t;
  bound.def_prop_ro("name", &field_of<&Info::name>, "The driver's name of the device.")
      .def_prop_ro("vendor", &field_of<&Info::vendor>, "Its vendor.")
      .def_prop_ro("driver_version", &field_of<&Info::driver_version>, "Version of its driver.")
      .def_prop_ro("backend", &field_of<&Info::backend>,
                   "\"host\", \"sim\", \"cuda\", \"opencl\" or \"sycl\".")
      .def_prop_ro("filter", &field_of<&Info::filter>,
                   "A filter string that identifies this device, for example \"opencl:cpu:0\".")
      .def_prop_ro("type", &type_of, "\"cpu\", \"gpu\" or \"accelerator\".")
      .def_prop_ro("platform", &platform_of, nb::sig("def platform(self) -> Platform"),
                   "The platform it belongs to.")
      .def_prop_ro("compute_units", &field_of<&Info::compute_units>, "Number of its compute units.")
      .def_prop_ro("copy_engines", &field_of<&Info::copy_engines>,
                   "Number of copies that it can execute concurrently with kernels.")
      .def_prop_ro("capabilities", &capabilities_of,
                   nb::sig("def capabilities(self) -> frozenset[str]"),
                   "Names of its capabilities: the flags ISTHMUS_CAN_* of isthmus.h in lower case.")
      .def_prop_ro("kinds", &kinds_of, nb::sig("def kinds(self) -> tuple[str, ...]"),
                   "The kinds of memory it supports, of \"device\", \"shared\", \"host\".")
      .def_prop_ro("total_memory", &field_of<&Info::memory_bytes>, "Size of its memory, in bytes.")
      .def_prop_ro("max_allocation", &field_of<&Info::max_allocation_bytes>,
                   "The largest single allocation, in bytes.")
      .def_prop_ro("base_alignment", &field_of<&Info::base_alignment>,
                   "Alignment in bytes of an allocation that requests none.")
      .def_prop_ro("max_alignment", &field_of<&Info::max_alignment>,
                   "The largest alignment that can be requested, in bytes.")
      .def_prop_ro("limitations", &field_of<&Info::limitations>,
                   "Features that its driver lacks, with their substitutes, or an empty string.")
      .def_prop_ro(
          "default_queue", &default_queue_of, nb::sig("def default_queue(self) -> Queue"),
          "The default queue on its default context, shared by all threads; always the same one.")
      .def_prop_ro("default_context", &default_context_of,
                   nb::sig("def default_context(self) -> Context"),
                   "The default context, which the devices of its platform share.")
      .def_prop_ro(
          "native_handle",
          [](const Device& self) { return reinterpret_cast<std::uintptr_t>(info_of(self).native); },
          "The driver's handle as an integer (OpenCL: cl_device_id), 0 if the driver has none.");
}

isthmus_status_t try_find_native(const char* backend, void* native, DeviceHandle& device) {
  prepare_drivers(backend);
  const GilRelease released;
  return isthmus_device_find_native(backend, native, device.out());
}

nb::object from_handle(nb::handle handle, nb::handle backend) {
  require_text(backend, "backend");
  DeviceHandle found;
  check(try_find_native(utf8_of(backend), to_pointer(handle, "handle"), found));
  return wrap(std::move(found));
}

}  // namespace

void bind_device(nb::module_& module) {
  nb::class_<Device> bound(
      module, "Device", nb::is_weak_referenceable(),
      "A device: Device(filter=None).\n\n"
      "`filter` is up to three of backend (\"host\", \"sim\", \"cuda\", \"opencl\", \"sycl\"),\n"
      "type (\"cpu\", \"gpu\", \"accelerator\") and number, in that order, joined by ':'; None:\n"
      "the current device. Opens the drivers that the filter allows. Raises\n"
      "DeviceNotFoundError, which lists the devices found.\n\n"
      "`with device:` makes it the current one of this thread and asyncio task; this nests.\n"
      "Devices are equal if they represent the same device. They are pickled by their filter\n"
      "and may be used from any thread.");
  types.device = bound;
  bind_from_sycl(bound, &find_sycl_device, "Device", "def from_sycl(obj: Any) -> Device");
  bound
      .def("__init__", &init_device, nb::arg("filter") = nb::none(),
           nb::sig("def __init__(self, filter: str | Device | None = None) -> None"))
      .def_static("from_handle", &from_handle, nb::arg("handle").none(), nb::arg("backend").none(),
                  nb::sig("def from_handle(handle: int, backend: str) -> Device"),
                  "The device of a backend that has this driver handle (OpenCL: cl_device_id;\n"
                  "SYCL: addressof_ref() of a dpctl.SyclDevice). It must be a live handle. Raises\n"
                  "DeviceNotFoundError for a device that is not listed, and where devices have no\n"
                  "handles.");
  bind_properties(bound);
  bind_with(bound);
  bound
      .def("memory_info", &memory_info, nb::sig("def memory_info(self) -> tuple[int, int]"),
           "(free, total) bytes of its memory now. Raises UnsupportedError where the driver\n"
           "does not report it.")
      .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
  bind_key<Device>(bound, [](const Device& self) { return self.key; }, &device_of);
  bind_repr(bound, "device");
}

}  // namespace isthmus::python
