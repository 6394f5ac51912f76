#include "arguments.hpp"
#include "buffer.hpp"
#include "current.hpp"

namespace isthmus::python {
namespace {

// The default queue if it is of the resource's context, else one of its own.
nb::object queue_in(const device& where, nb::handle within) {
  const nb::object usual = default_queue_of(where);
  const nb::object& of = queue_of(usual)->context_object;
  if (!within.is_valid() || of.equal(within)) {
    return usual;
  }
  queue_handle made;
  check(isthmus_queue_create(context_of(within)->raw.get(), where.raw.get(), made.out()));
  return wrap(std::move(made));
}

nb::object device_for(nb::handle on, nb::handle within) {
  if (!on.is_none() || !within.is_valid()) {
    return to_device(on);
  }
  device_handle first;
  check(isthmus_context_device(context_of(within)->raw.get(), 0, first.out()));
  return wrap(std::move(first));
}

void init_provider(resource* self, nb::handle kind, nb::handle on, nb::handle in) {
  const auto of_kind = to_kind(kind);
  const nb::handle within = in.is_none() ? nb::handle{} : in;
  if (within.is_valid() && context_of(within) == nullptr) {
    raise_python(PyExc_TypeError, "context must be a Context or None, not %.100s",
                 Py_TYPE(within.ptr())->tp_name);
  }
  const nb::object where = device_for(on, within);
  const auto& device_raw = device_of(where)->raw;
  context_handle usual;
  if (!within.is_valid()) {
    check(isthmus_context_default(device_raw.get(), usual.out()));
  }
  resource_handle made;
  check(isthmus_resource_provider(within.is_valid() ? context_of(within)->raw.get() : usual.get(),
                                  device_raw.get(), of_kind, made.out()));
  new (self) resource{std::move(made), of_kind, queue_in(*device_of(where), within)};
}

nb::object allocate(const resource& self, nb::handle nbytes, nb::handle alignment,
                    nb::handle queue) {
  const nb::object on = queue.is_none() ? self.queue_object : to_queue(queue, nb::handle{});
  nb::object made = nb::inst_alloc(types.buffer);
  construct_buffer(nb::inst_ptr<buffer>(made), to_size(nbytes, "nbytes"), self.kind,
                   to_alignment(alignment), on, self.raw.get());
  nb::inst_mark_ready(made);
  return made;
}

nb::object live(nb::handle kind) {
  std::uint64_t count = 0, bytes = 0;
  isthmus_live(kind.is_none() ? ISTHMUS_KIND_UNKNOWN : to_kind(kind), &count, &bytes);
  return nb::make_tuple(count, bytes);
}

}  // namespace

void bind_resource(nb::module_& module) {
  nb::class_<resource> bound(
      module, "ProviderResource",
      "The driver's own allocator: ProviderResource(kind=\"device\", device=None,\n"
      "context=None).\n\n"
      "`device` None: the first of `context`, else the current one; `context` None: the\n"
      "device's default one. Raises UnsupportedError for a kind that the device has not. Used\n"
      "as Buffer(nbytes, resource=...); safe to use from any thread.");
  types.resource = bound;
  bound
      .def("__init__", &init_provider, nb::arg("kind") = "device", nb::arg("device") = nb::none(),
           nb::arg("context") = nb::none(),
           nb::sig("def __init__(self, kind: str = 'device', device: Device | str | None = None, "
                   "context: Context | None = None) -> None"))
      .def_prop_ro(
          "kind", [](const resource& self) { return kind_name(self.kind); },
          nb::sig("def kind(self) -> str"), "The kind of its memory.")
      .def_prop_ro(
          "queue", [](const resource& self) { return self.queue_object; },
          nb::sig("def queue(self) -> Queue"),
          "The queue of buffers that are made of it without one being named.")
      .def_prop_ro(
          "device", [](const resource& self) { return queue_of(self.queue_object)->device_object; },
          nb::sig("def device(self) -> Device"), "The device it allocates for.")
      .def_prop_ro(
          "context",
          [](const resource& self) { return queue_of(self.queue_object)->context_object; },
          nb::sig("def context(self) -> Context"), "The context its memory belongs to.")
      .def("allocate", &allocate, nb::arg("nbytes").none(), nb::arg("alignment") = 0,
           nb::arg("queue") = nb::none(),
           nb::sig(
               "def allocate(self, nbytes: int, alignment: int = 0, queue: Queue | None = None) -> "
               "Buffer"),
           "Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self).");
  module.def(
      "live", &live, nb::arg("kind") = nb::none(),
      nb::sig("def live(kind: str | None = None) -> tuple[int, int]"),
      "(allocations, bytes) that live in this process, of one kind (None: all). Memory whose\n"
      "free waits for work in flight counts.");
}

}  // namespace isthmus::python
