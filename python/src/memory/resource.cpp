// SPDX-License-Identifier: Apache-2.0
#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "memory/bindings.hpp"
#include "memory/resources.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

const Resource* find_resource_object(nb::handle argument) noexcept {
  return instance_of<Resource>(types.resource, argument);
}

}  // namespace

ResourceTarget::ResourceTarget(nb::handle kind_argument, nb::handle target_queue,
                               nb::handle context_argument)
    : kind{to_kind(kind_argument)} {
  const auto* named = context_or_none(context_argument);
  device_object = target_queue.is_none() && named != nullptr ? first_device_of(*named)
                                                             : to_device(target_queue);
  const auto& device = *device_of(device_object);
  if (named == nullptr) {
    check(isthmus_context_default(device.raw.get(), default_context.out()));
  }
  context = named != nullptr ? named->raw.get() : default_context.get();
  queue = named != nullptr ? queue_in_context(device, *named) : default_queue_of(device);
}

const Resource& require_resource(nb::handle argument, const char* name) {
  const auto* found = find_resource_object(argument);
  if (found == nullptr) {
    raise_wrong_type(argument, "%s must be a resource of isthmus.memory", name);
  }
  return *found;
}

const Resource* resource_or_none(nb::handle argument) {
  if (!has_value(argument)) {
    return nullptr;
  }
  const auto* found = find_resource_object(argument);
  if (found == nullptr) {
    raise_wrong_type(argument, "resource must be a resource of isthmus.memory or None");
  }
  return found;
}

nb::handle device_of_resource(const Resource& resource) {
  return queue_of(resource.queue_object)->device_object;
}

isthmus_resource_info_t info_of(const Resource& resource) {
  auto info = sized<isthmus_resource_info_t>();
  const ExceptionScope exceptions;
  check(isthmus_resource_info(resource.raw.get(), &info));
  exceptions.raise();
  return info;
}

nb::object wrap_resource(ResourceHandle raw, isthmus_kind_t kind, nb::handle queue) {
  if (nb::object existing = find_resource(raw.get()); existing.is_valid()) {
    return existing;
  }
  return make_instance<Resource>(types.resource,
                                 Resource{std::move(raw), kind, nb::borrow(queue), true});
}

namespace {

void init_provider(ProviderResource* self, nb::handle kind, nb::handle queue,
                   nb::handle context_argument, nb::handle write_combined) {
  ResourceTarget target{kind, queue, context_argument};
  const bool is_combined = to_flag(write_combined, "write_combined");
  if (is_combined && target.kind != ISTHMUS_KIND_HOST) {
    raise_python(PyExc_ValueError, "write-combined memory is of kind 'host', not %R", kind.ptr());
  }
  ResourceHandle resource;
  check(is_combined
            ? isthmus_resource_write_combined(target.context, target.device_raw(), resource.out())
            : isthmus_resource_provider(target.context, target.device_raw(), target.kind,
                                        resource.out()));
  construct_resource(self,
                     ProviderResource{{std::move(resource), target.kind, std::move(target.queue)}});
}

std::uint64_t trim(const Resource& self, nb::handle keep_bytes) {
  const auto min_held_bytes = to_bytes(keep_bytes, "keep_bytes", nb::handle{}, self.kind);
  std::uint64_t released_bytes = 0;
  const ExceptionScope exceptions;
  check(without_lock(
      [&] { return isthmus_resource_trim(self.raw.get(), min_held_bytes, &released_bytes); }));
  exceptions.raise();
  return released_bytes;
}

nb::object live(nb::handle kind) {
  auto info = sized<isthmus_live_info_t>();
  const auto memory_kind = kind.is_none() ? ISTHMUS_KIND_UNKNOWN : to_kind(kind);
  check(without_lock([&] { return isthmus_live_info(memory_kind, &info); }));
  return nb::make_tuple(info.count, info.bytes);
}

// The resource of an allocation in that context.
nb::object wrap_origin(ResourceHandle raw, nb::handle context) {
  if (nb::object existing = find_resource(raw.get()); existing.is_valid()) {
    return existing;
  }
  const auto info = info_of(Resource{ResourceHandle{raw}, ISTHMUS_KIND_UNKNOWN, {}});
  const nb::object device = wrap(DeviceHandle::share(info.device));
  return wrap_resource(std::move(raw), info.kind,
                       queue_in_context(*device_of(device), *context_of(context)));
}

const char* state_name(isthmus_memory_state_t state) {
  switch (state) {
    case ISTHMUS_MEMORY_LIVE: return "live";
    case ISTHMUS_MEMORY_WAITING: return "waiting";
    case ISTHMUS_MEMORY_FREE: return "free";
    default: return "unknown";
  }
}

nb::object query(nb::handle pointer, nb::handle context) {
  const auto* queried_context = context_or_none(context);
  const void* address = to_pointer(pointer, "pointer");
  const auto info = read_info<isthmus_pointer_info_t>(
      isthmus_pointer_info, queried_context == nullptr ? nullptr : queried_context->raw.get(),
      address);
  ContextHandle context_handle;
  auto resource_handle =
      make_handle<ResourceHandle>(isthmus_pointer_origin, address, context_handle.out());
  nb::object device = nb::none(), owner = nb::none(), resource = nb::none();
  if (info.device != nullptr) {
    device = wrap(DeviceHandle::share(info.device));
  }
  if (info.context != nullptr) {
    owner = context_handle.get() == nullptr ? nb::borrow(context) : wrap(std::move(context_handle));
  }
  if (info.resource != nullptr && resource_handle.get() != nullptr) {
    resource = wrap_origin(std::move(resource_handle), owner);
  }
  return nb::module_::import_("isthmus._pointer")
      .attr("PointerInfo")(kind_name(info.kind), reinterpret_cast<std::uintptr_t>(info.base),
                           info.nbytes, device, owner, resource, state_name(info.state),
                           info.requested_bytes, info.queue_key);
}

std::uintptr_t key_of(const Resource& self) noexcept {
  return reinterpret_cast<std::uintptr_t>(self.raw.get());
}

constexpr auto k_custom_resource_hint =
    "for a custom resource pass an object with allocate(nbytes, alignment, queue) and "
    "deallocate(pointer, nbytes, queue) to isthmus.memory.CustomResource";

// The library calls its resources through their function tables, never through Python methods.
// Overrides in a subclass would be ignored, so such a subclass is rejected.
PyObject* init_subclass(PyObject* type, PyObject*, PyObject*) noexcept {
  return result_of([type] {
    const nb::handle subclass = type;
    if (!subclass.attr("allocate").is(types.resource.attr("allocate")) ||
        nb::hasattr(subclass, "deallocate")) {
      raise_python(
          PyExc_TypeError,
          "%.100s: allocate and deallocate of a subclass of a resource are never called; %s",
          reinterpret_cast<PyTypeObject*>(type)->tp_name, k_custom_resource_hint);
    }
    return nb::none();
  });
}

PyMethodDef resource_methods[] = {
    {"__init_subclass__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot resource_slots[] = {{Py_tp_methods, resource_methods}, {0, nullptr}};

void verify(const Resource& self) {
  check(without_lock([&] { return isthmus_resource_verify(self.raw.get()); }));
}

}  // namespace

void raise_abstract(nb::handle self, const nb::args&, const nb::kwargs&) {
  raise_python(PyExc_TypeError,
               "%.100s is the base class of resources and cannot be instantiated; %s",
               Py_TYPE(self.ptr())->tp_name, k_custom_resource_hint);
}

namespace {

template <auto Field>
std::uint64_t info_field(const Resource& self) {
  return info_of(self).*Field;
}

}  // namespace

nb::class_<Resource> bind_resource(nb::module_& module) {
  nb::class_<Resource> base(
      module, "MemoryResource", nb::type_slots(resource_slots), nb::is_weak_referenceable(),
      "Allocates memory of one kind, in one context, on one device: the base of all resources.\n"
      "Used as Buffer(nbytes, resource=...); safe to use from any thread. It lives as long as its\n"
      "memory. To implement a resource, use CustomResource rather than a subclass.");
  types.resource = base;
  base.def("__init__", &raise_abstract);
  base.def_prop_ro(
          "kind", [](const Resource& self) { return kind_name(self.kind); },
          nb::sig("def kind(self) -> str"), "The kind of its memory.")
      .def_prop_ro(
          "queue", [](const Resource& self) { return self.queue_object; },
          nb::sig("def queue(self) -> Queue"),
          "The queue of buffers that are created from it without a queue.")
      .def_prop_ro(
          "device", [](const Resource& self) { return nb::borrow(device_of_resource(self)); },
          nb::sig("def device(self) -> Device"), "The device that the resource allocates for.")
      .def_prop_ro(
          "context",
          [](const Resource& self) { return queue_of(self.queue_object)->context_object; },
          nb::sig("def context(self) -> Context"), "The context that its memory belongs to.")
      .def_prop_ro("held_bytes", &info_field<&isthmus_resource_info_t::held_bytes>,
                   "Bytes of the driver's memory that the resource holds; a provider holds none.")
      .def_prop_ro("free_bytes", &info_field<&isthmus_resource_info_t::free_bytes>,
                   "Held bytes that no buffer, thread or size class uses.")
      .def_prop_ro(
          "maps", &info_field<&isthmus_resource_info_t::maps>,
          "How often the driver allocated memory for it, or mapped memory at another address.")
      .def_prop_ro("unmaps", &info_field<&isthmus_resource_info_t::unmaps>,
                   "How often memory was returned to the driver, or unmapped from its address.")
      .def("verify", &verify,
           "Checks all records of this resource and its upstreams. Raises ValueError with the\n"
           "errors that a DebugResource detected, now or before, InternalError if a pool's\n"
           "records are inconsistent. Slow.")
      .def("trim", &trim, nb::arg("keep_bytes").none() = 0,
           nb::sig("def trim(self, keep_bytes: ByteCount = 0) -> int"),
           "Returns free memory to the driver while more than `keep_bytes` are held. The result\n"
           "is the number of bytes returned. Memory in thread caches counts as free.");
  bind_key<Resource>(base, &key_of, &find_resource_object);
  bind_repr(base, "resource");
  nb::class_<ProviderResource, Resource>(
      module, "ProviderResource",
      "The driver's own allocator: ProviderResource(kind=\"device\", device=None, context=None,\n"
      "write_combined=False).\n\n"
      "`device` None: the first device of `context`, else the current device; `context` None: the\n"
      "device's default one. `write_combined`, for kind \"host\": memory that bypasses the host's\n"
      "caches, for data that the host writes once, in order, and devices read. Reading it on the\n"
      "host takes some hundred times as long. Raises UnsupportedError for a kind that the device\n"
      "does not have, and for write-combined memory without the capability \"write_combine\".")
      .def("__init__", &init_provider, nb::arg("kind").none() = "device",
           nb::arg("device") = nb::none(), nb::arg("context") = nb::none(), nb::kw_only(),
           nb::arg("write_combined").none() = false,
           nb::sig("def __init__(self, kind: str = 'device', device: Device | str | None = None, "
                   "context: Context | None = None, *, write_combined: bool = False) -> None"));
  bind_pool(module);
  bind_adaptors(module);
  module.def(
      "live", &live, nb::arg("kind") = nb::none(),
      nb::sig("def live(kind: str | None = None) -> tuple[int, int]"),
      "(allocations, bytes) that are live in this process, of one kind (None: all). Memory of\n"
      "default pools counts by block in use, with its bytes as the pool rounds them. For other\n"
      "pools, all memory that they hold of the driver counts, in use or free. Memory whose\n"
      "release waits for work in flight counts.");
  module.def("query", &query, nb::arg("pointer").none(), nb::kw_only(),
             nb::arg("context") = nb::none(),
             nb::sig("def query(pointer: int, *, context: Context | None = None) -> PointerInfo"),
             "Returns information about an address, which may lie inside of a buffer: the whole\n"
             "block of a buffer belongs to it. For an address that the library does not know, the\n"
             "driver of `context` is queried, if that is passed; memory of other contexts is then\n"
             "unknown. Raises ValueError if `pointer` is not an address.");
  return base;
}

}  // namespace isthmus::python
