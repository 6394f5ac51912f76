// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "budget.hpp"
#include "buffer.hpp"
#include "current.hpp"
#include "gil.hpp"
#include "resources.hpp"
#include "sizes.hpp"

namespace isthmus::python {
namespace {

// The default queue if it is of the resource's context, else a new one.
nb::object queue_in(const Device& device, nb::handle within) {
  ContextHandle usual;
  check(isthmus_context_default(device.raw.get(), usual.out()));
  if (!within.is_valid() ||
      isthmus_context_key(usual.get()) == isthmus_context_key(context_of(within)->raw.get())) {
    return default_queue_of(device);
  }
  QueueHandle made;
  check(isthmus_queue_create(context_of(within)->raw.get(), device.raw.get(), made.out()));
  return wrap(std::move(made));
}

nb::object device_for(nb::handle queue, nb::handle within) {
  if (!queue.is_none() || !within.is_valid()) {
    return to_device(queue);
  }
  DeviceHandle first;
  check(isthmus_context_device(context_of(within)->raw.get(), 0, first.out()));
  return wrap(std::move(first));
}

}  // namespace

Purpose::Purpose(nb::handle of_kind, nb::handle target_queue, nb::handle in)
    : kind{to_kind(of_kind)} {
  const nb::handle named = in.is_none() ? nb::handle{} : in;
  if (named.is_valid() && context_of(named) == nullptr) {
    raise_python(PyExc_TypeError, "context must be a Context or None, not %.100s",
                 Py_TYPE(named.ptr())->tp_name);
  }
  where = device_for(target_queue, named);
  if (named.is_valid()) {
    within = context_of(named)->raw.get();
  } else {
    check(isthmus_context_default(device_raw(), usual.out()));
    within = usual.get();
  }
  queue = queue_in(*device_of(where), named);
}

const Resource& require_resource(nb::handle given, const char* name) {
  const auto* found = instance_of<Resource>(types.resource, given);
  if (found == nullptr) {
    raise_python(PyExc_TypeError, "%s must be a resource of isthmus.memory, not %.100s", name,
                 Py_TYPE(given.ptr())->tp_name);
  }
  return *found;
}

const Resource* resource_or_none(nb::handle named) {
  if (!given(named)) {
    return nullptr;
  }
  const auto* found = instance_of<Resource>(types.resource, named);
  if (found == nullptr) {
    raise_python(PyExc_TypeError,
                 "resource must be a resource of isthmus.memory or None, not %.100s",
                 Py_TYPE(named.ptr())->tp_name);
  }
  return found;
}

nb::handle device_under(const Resource& resource) {
  return queue_of(resource.queue_object)->device_object;
}

isthmus_resource_info_t info_of(const Resource& resource) {
  isthmus_resource_info_t info{};
  info.struct_size = sizeof info;
  const Carrying exceptions;
  check(isthmus_resource_query(resource.raw.get(), &info));
  exceptions.raise();
  return info;
}

// From Python 3.12 on the name of a type includes that of its module.
nb::object resource_repr(nb::handle object) {
  const auto& self = require_resource(object, "self");
  const auto where = describe(*device_of(queue_of(self.queue_object)->device_object));
  const nb::object name = object.type().attr("__name__");
  return nb::steal(PyUnicode_FromFormat("<isthmus.memory.%U of %U memory on %s>", name.ptr(),
                                        kind_name(self.kind).ptr(), where.c_str()));
}

namespace {

void init_provider(ProviderResource* self, nb::handle kind, nb::handle queue, nb::handle in,
                   nb::handle write_combined) {
  Purpose what{kind, queue, in};
  const bool is_combined = to_flag(write_combined, "write_combined");
  if (is_combined && what.kind != ISTHMUS_KIND_HOST) {
    raise_python(PyExc_ValueError, "write-combined memory is of kind 'host', not %R", kind.ptr());
  }
  ResourceHandle made;
  check(is_combined
            ? isthmus_resource_write_combined(what.within, what.device_raw(), made.out())
            : isthmus_resource_provider(what.within, what.device_raw(), what.kind, made.out()));
  construct_resource(self, ProviderResource{{std::move(made), what.kind, std::move(what.queue)}});
}

std::uint64_t trim(const Resource& self, nb::handle keep_bytes) {
  const auto keep = to_bytes(keep_bytes, "keep_bytes", nb::handle{}, self.kind);
  std::uint64_t given_back = 0;
  isthmus_status_t status;
  const Carrying exceptions;
  {
    const GilRelease released;
    status = isthmus_resource_trim(self.raw.get(), keep, &given_back);
  }
  check(status);
  exceptions.raise();
  return given_back;
}

nb::object allocate(const Resource& self, nb::handle nbytes, nb::handle alignment,
                    nb::handle queue) {
  const nb::object on = queue.is_none() ? self.queue_object : to_queue(queue, nb::handle{});
  nb::object made = nb::inst_alloc(types.buffer);
  construct_buffer(nb::inst_ptr<Buffer>(made),
                   to_allocation_size(nbytes, "nbytes", self.kind, *queue_of(on)), self.kind,
                   to_exact_alignment(alignment), on, &self, KindsAllowed::any);
  nb::inst_mark_ready(made);
  return made;
}

nb::object live(nb::handle kind) {
  std::uint64_t count = 0, bytes = 0;
  const auto of = kind.is_none() ? ISTHMUS_KIND_UNKNOWN : to_kind(kind);
  {
    const GilRelease released;
    isthmus_live(of, &count, &bytes);
  }
  return nb::make_tuple(count, bytes);
}

// If the object that it was created as is gone, this is an object of the common base class.
nb::object wrap_resource(ResourceHandle raw, nb::handle within) {
  if (nb::object made_as = find_resource(raw.get()); made_as.is_valid()) {
    return made_as;
  }
  Resource made{std::move(raw), ISTHMUS_KIND_UNKNOWN, {}, true};
  const auto told = info_of(made);
  made.kind = told.kind;
  const nb::object where = wrap(DeviceHandle::retained(told.device));
  made.queue_object = queue_in(*device_of(where), within);
  nb::object object = nb::inst_alloc(types.resource);
  new (nb::inst_ptr<Resource>(object)) Resource{std::move(made)};
  nb::inst_mark_ready(object);
  return object;
}

const char* state_name(isthmus_memory_state_t state) {
  switch (state) {
    case ISTHMUS_MEMORY_LIVE: return "live";
    case ISTHMUS_MEMORY_WAITING: return "waiting";
    case ISTHMUS_MEMORY_FREE: return "free";
    default: return "unknown";
  }
}

nb::object query(nb::handle pointer, nb::handle within) {
  const auto* asked = within.is_none() ? nullptr : context_of(within);
  if (asked == nullptr && !within.is_none()) {
    raise_python(PyExc_TypeError, "context must be a Context or None, not %.100s",
                 Py_TYPE(within.ptr())->tp_name);
  }
  const void* at = to_pointer(pointer, "pointer");
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_pointer_query(asked == nullptr ? nullptr : asked->raw.get(), at, &info));
  ContextHandle home;
  ResourceHandle from;
  check(isthmus_pointer_origin(at, home.out(), from.out()));
  nb::object where = nb::none(), owner = nb::none(), resource = nb::none();
  if (info.device != nullptr) {
    where = wrap(DeviceHandle::retained(info.device));
  }
  if (info.context != nullptr) {
    owner = home.get() == nullptr ? nb::borrow(within) : wrap(std::move(home));
  }
  if (info.resource != nullptr && from.get() != nullptr) {
    resource = wrap_resource(std::move(from), owner);
  }
  return nb::module_::import_("isthmus._pointer")
      .attr("PointerInfo")(kind_name(info.kind), reinterpret_cast<std::uintptr_t>(info.base),
                           info.nbytes, where, owner, resource, state_name(info.state),
                           info.requested_bytes, info.queue_key);
}

std::uintptr_t key_of(const Resource& self) noexcept {
  return reinterpret_cast<std::uintptr_t>(self.raw.get());
}

nb::object equal(const Resource& self, nb::handle other) {
  const auto* with = instance_of<Resource>(types.resource, other);
  return with == nullptr ? nb::borrow(Py_NotImplemented) : nb::bool_(key_of(self) == key_of(*with));
}

constexpr auto k_how_to_make_ones_own =
    "for a custom resource pass an object with allocate(nbytes, alignment, queue) and "
    "deallocate(pointer, nbytes, queue) to isthmus.memory.CustomResource";

// The library calls the resources that it knows through their function tables, never by their names
// in Python. Methods of these names in a subclass would be ignored, so a subclass is refused.
PyObject* init_subclass(PyObject* type, PyObject*, PyObject*) noexcept {
  return result_of([type] {
    const nb::handle made = type;
    if (!made.attr("allocate").is(types.resource.attr("allocate")) ||
        nb::hasattr(made, "deallocate")) {
      raise_python(
          PyExc_TypeError,
          "%.100s: allocate and deallocate of a subclass of a resource are never called; %s",
          reinterpret_cast<PyTypeObject*>(type)->tp_name, k_how_to_make_ones_own);
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
  isthmus_status_t status;
  {
    const GilRelease released;
    status = isthmus_resource_verify(self.raw.get());
  }
  check(status);
}

}  // namespace

void refuse_to_make(nb::handle self, const nb::args&, const nb::kwargs&) {
  raise_python(PyExc_TypeError,
               "%.100s is the base class of resources and cannot be instantiated; %s",
               Py_TYPE(self.ptr())->tp_name, k_how_to_make_ones_own);
}

void bind_resource(nb::module_& module) {
  nb::class_<Resource> base(
      module, "MemoryResource", nb::type_slots(resource_slots), nb::is_weak_referenceable(),
      "Allocates memory of one kind, in one context, on one device: the base of all resources.\n"
      "Used as Buffer(nbytes, resource=...); safe to use from any thread. It lives as long as\n"
      "its memory. A resource of your own is a CustomResource, not a subclass.");
  types.resource = base;
  base.def("__init__", &refuse_to_make);
  base.def_prop_ro(
          "kind", [](const Resource& self) { return kind_name(self.kind); },
          nb::sig("def kind(self) -> str"), "The kind of its memory.")
      .def_prop_ro(
          "queue", [](const Resource& self) { return self.queue_object; },
          nb::sig("def queue(self) -> Queue"),
          "The queue of buffers that are created with it and name no queue.")
      .def_prop_ro(
          "device", [](const Resource& self) { return nb::borrow(device_under(self)); },
          nb::sig("def device(self) -> Device"), "The device that it allocates for.")
      .def_prop_ro(
          "context",
          [](const Resource& self) { return queue_of(self.queue_object)->context_object; },
          nb::sig("def context(self) -> Context"), "The context that its memory belongs to.")
      .def("allocate", &allocate, nb::arg("nbytes").none(), nb::arg("alignment").none() = 0,
           nb::arg("queue") = nb::none(),
           nb::sig(
               "def allocate(self, nbytes: int, alignment: int = 0, queue: Queue | None = None) -> "
               "Buffer"),
           "Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self).\n"
           "`alignment` 0: the device's own. Raises ValueError if it is neither 0 nor a power of\n"
           "two.")
      .def_prop_ro(
          "held_bytes", [](const Resource& self) { return info_of(self).held_bytes; },
          nb::sig("def held_bytes(self) -> int"),
          "Bytes that it holds of the driver's memory; a provider holds none.")
      .def_prop_ro(
          "free_bytes", [](const Resource& self) { return info_of(self).free_bytes; },
          nb::sig("def free_bytes(self) -> int"),
          "Bytes of these that no buffer, thread or size class holds.")
      .def_prop_ro(
          "maps", [](const Resource& self) { return info_of(self).maps; },
          nb::sig("def maps(self) -> int"),
          "How often the driver gave it memory, or mapped some at another address.")
      .def_prop_ro(
          "unmaps", [](const Resource& self) { return info_of(self).unmaps; },
          nb::sig("def unmaps(self) -> int"),
          "How often memory was returned to the driver, or unmapped from its address.")
      .def("verify", &verify, nb::sig("def verify(self) -> None"),
           "Checks all records of this resource and its upstreams. Raises ValueError with what\n"
           "a DebugResource found, now or before, InternalError if a pool's records are\n"
           "inconsistent. Takes long.")
      .def("trim", &trim, nb::arg("keep_bytes").none() = 0,
           nb::sig("def trim(self, keep_bytes: int | str = 0) -> int"),
           "Returns free memory to the driver while more than `keep_bytes` are held. Returns\n"
           "the number of bytes returned. Memory in thread caches counts as free.")
      .def("__eq__", &equal, nb::arg("other").none(),
           nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__hash__", &key_of)
      .def("__repr__", &resource_repr, nb::sig("def __repr__(self) -> str"));
  nb::class_<ProviderResource, Resource>(
      module, "ProviderResource",
      "The driver's own allocator: ProviderResource(kind=\"device\", device=None, context=None,\n"
      "write_combined=False).\n\n"
      "`device` None: the first of `context`, else the current one; `context` None: the\n"
      "device's default one. `write_combined`, for kind \"host\": memory that bypasses the\n"
      "host's caches, for data that the host writes once, in order, and devices read. Reading\n"
      "it on the host takes some hundred times as long. Raises UnsupportedError for a kind that\n"
      "the device does not have, and for write-combined memory without the capability\n"
      "\"write_combine\".")
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
      "default pools counts by block in use, with its bytes as the pool rounds them. Of other\n"
      "pools, everything that they hold of the driver's memory counts, in use or free. Memory\n"
      "whose free waits for work in flight counts.");
  module.def("query", &query, nb::arg("pointer").none(), nb::kw_only(),
             nb::arg("context") = nb::none(),
             nb::sig("def query(pointer: int, *, context: Context | None = None) -> PointerInfo"),
             "Returns what is known about an address, which may lie inside of a buffer: the whole\n"
             "block of a buffer belongs to it. For an address that the library does not know, the\n"
             "driver of `context` is queried, if one is given; memory of other contexts is then\n"
             "unknown. Raises ValueError if it is not an address.");
}

}  // namespace isthmus::python
