#include <algorithm>

#include "arguments.hpp"
#include "budget.hpp"
#include "buffer.hpp"
#include "current.hpp"
#include "gil.hpp"
#include "resources.hpp"

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

}  // namespace

purpose::purpose(nb::handle of_kind, nb::handle on, nb::handle in) : kind{to_kind(of_kind)} {
  const nb::handle named = in.is_none() ? nb::handle{} : in;
  if (named.is_valid() && context_of(named) == nullptr) {
    raise_python(PyExc_TypeError, "context must be a Context or None, not %.100s",
                 Py_TYPE(named.ptr())->tp_name);
  }
  where = device_for(on, named);
  if (named.is_valid()) {
    within = context_of(named)->raw.get();
  } else {
    check(isthmus_context_default(device_raw(), usual.out()));
    within = usual.get();
  }
  queue = queue_in(*device_of(where), named);
}

const resource& require_resource(nb::handle given, const char* what) {
  const auto* found = instance_of<resource>(types.resource, given);
  if (found == nullptr) {
    raise_python(PyExc_TypeError, "%s must be a resource of isthmus.memory, not %.100s", what,
                 Py_TYPE(given.ptr())->tp_name);
  }
  return *found;
}

namespace {

void init_provider(provider_resource* self, nb::handle kind, nb::handle on, nb::handle in) {
  purpose what{kind, on, in};
  resource_handle made;
  check(isthmus_resource_provider(what.within, what.device_raw(), what.kind, made.out()));
  new (self) provider_resource{{std::move(made), what.kind, std::move(what.queue)}};
}

// As text or a number; 0 for None.
std::uint64_t to_limit(nb::handle value, const char* what, const purpose& of) {
  if (value.is_none()) {
    return 0;
  }
  const auto bytes = to_bytes(value, what, of.where, of.kind);
  if (bytes == 0) {
    raise_python(PyExc_ValueError, "%s must be above 0, or None for no limit", what);
  }
  return bytes;
}

isthmus_budget_t* to_budget(nb::handle value) {
  const auto* given = value.is_none() ? nullptr : instance_of<budget>(types.budget, value);
  if (given == nullptr && !value.is_none()) {
    raise_python(PyExc_TypeError, "budget must be a Budget or None, not %.100s",
                 Py_TYPE(value.ptr())->tp_name);
  }
  return given == nullptr ? nullptr : given->raw.get();
}

// In nanoseconds; 0 for None.
std::uint64_t to_decay(nb::handle seconds) {
  if (seconds.is_none()) {
    return 0;
  }
  const double given = PyFloat_AsDouble(seconds.ptr());
  if (given == -1.0 && PyErr_Occurred() != nullptr) {
    raise_set();
  }
  constexpr double k_longest = 9.2e9;  // seconds that fit in 63 bits of nanoseconds
  if (!(given > 0)) {
    raise_python(PyExc_ValueError, "decay must be above 0 seconds, or None for never, not %R",
                 seconds.ptr());
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::min(given, k_longest) * 1e9));
}

// PoolResource's arguments beside those of every resource.
struct pool_arguments {
  nb::handle initial_bytes, growth_bytes, limit_bytes;
  bool checked, remap;
  nb::handle soft_limit_bytes, budget, decay;

  [[nodiscard]] isthmus_pool_options_t options(const purpose& of) const {
    isthmus_pool_options_t options{};
    options.struct_size = sizeof options;
    options.initial_bytes = to_bytes(initial_bytes, "initial_bytes", of.where, of.kind);
    if (!growth_bytes.is_none()) {
      options.growth_bytes = to_bytes(growth_bytes, "growth_bytes", of.where, of.kind);
    }
    options.limit_bytes = to_limit(limit_bytes, "limit_bytes", of);
    options.flags = (checked ? 0U : std::uint32_t{ISTHMUS_POOL_UNCHECKED}) |
                    (remap ? 0U : std::uint32_t{ISTHMUS_POOL_NO_REMAP});
    options.soft_limit_bytes = to_limit(soft_limit_bytes, "soft_limit_bytes", of);
    options.budget = to_budget(budget);
    options.decay_ns = to_decay(decay);
    return options;
  }
};

void init_pool(pool_resource* self, nb::handle kind, nb::handle on, nb::handle in,
               nb::handle initial_bytes, nb::handle growth_bytes, nb::handle limit_bytes,
               bool checked, bool remap, nb::handle soft_limit_bytes, nb::handle shared,
               nb::handle decay) {
  purpose what{kind, on, in};
  const pool_arguments given{initial_bytes, growth_bytes,     limit_bytes, checked,
                             remap,         soft_limit_bytes, shared,      decay};
  const auto options = given.options(what);
  resource_handle made;
  isthmus_status_t status;
  {
    const gil_release released;
    status = isthmus_resource_pool(what.within, what.device_raw(), what.kind, &options, made.out());
  }
  check(status);
  new (self) pool_resource{{std::move(made), what.kind, std::move(what.queue)},
                           options.limit_bytes,
                           options.soft_limit_bytes,
                           nb::borrow(shared),
                           nb::borrow(decay)};
}

nb::object limit_or_none(std::uint64_t bytes) {
  return bytes == 0 ? nb::none() : nb::object{nb::int_(bytes)};
}

isthmus_resource_info_t info_of(const resource& of) {
  isthmus_resource_info_t info{};
  info.struct_size = sizeof info;
  const carrying exceptions;
  check(isthmus_resource_query(of.raw.get(), &info));
  exceptions.raise();
  return info;
}

std::uint64_t trim(const resource& self, nb::handle keep_bytes) {
  const auto keep = to_bytes(keep_bytes, "keep_bytes", nb::handle{}, self.kind);
  std::uint64_t given_back = 0;
  isthmus_status_t status;
  const carrying exceptions;
  {
    const gil_release released;
    status = isthmus_resource_trim(self.raw.get(), keep, &given_back);
  }
  check(status);
  exceptions.raise();
  return given_back;
}

nb::object resource_repr(nb::handle object) {
  const auto& self = require_resource(object, "self");
  const auto where = describe(*device_of(queue_of(self.queue_object)->device_object));
  return nb::steal(PyUnicode_FromFormat("<isthmus.memory.%s of %U memory on %s>",
                                        Py_TYPE(object.ptr())->tp_name, kind_name(self.kind).ptr(),
                                        where.c_str()));
}

nb::object pool_repr(nb::pointer_and_handle<pool_resource> self) {
  const nb::object begin = resource_repr(self.h);
  const nb::object most = nb::borrow(begin[nb::slice(0, -1)]);
  const auto info = info_of(*self.p);
  return nb::steal(PyUnicode_FromFormat("%U, %llu bytes held, %llu free>", most.ptr(),
                                        static_cast<unsigned long long>(info.held_bytes),
                                        static_cast<unsigned long long>(info.free_bytes)));
}

nb::object allocate(const resource& self, nb::handle nbytes, nb::handle alignment,
                    nb::handle queue) {
  const nb::object on = queue.is_none() ? self.queue_object : to_queue(queue, nb::handle{});
  nb::object made = nb::inst_alloc(types.buffer);
  construct_buffer(nb::inst_ptr<buffer>(made), to_size(nbytes, "nbytes"), self.kind,
                   to_alignment(alignment), on, &self, kinds_allowed::any);
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
  nb::class_<resource> base(
      module, "MemoryResource",
      "Hands out memory of one kind, in one context, on one device: what all resources have in\n"
      "common. Used as Buffer(nbytes, resource=...); safe to use from any thread. It lives as\n"
      "long as what was made of it.");
  types.resource = base;
  base.def_prop_ro(
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
           "Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self).")
      .def_prop_ro(
          "held_bytes", [](const resource& self) { return info_of(self).held_bytes; },
          nb::sig("def held_bytes(self) -> int"),
          "Bytes that it keeps of the driver's; a provider keeps none.")
      .def_prop_ro(
          "free_bytes", [](const resource& self) { return info_of(self).free_bytes; },
          nb::sig("def free_bytes(self) -> int"),
          "Bytes of these that no buffer, thread or size class has.")
      .def("trim", &trim, nb::arg("keep_bytes") = 0,
           nb::sig("def trim(self, keep_bytes: int | str = 0) -> int"),
           "Gives what is free back to the driver while more than `keep_bytes` are held; the\n"
           "bytes given back. What other threads keep for themselves stays.")
      .def("__repr__", &resource_repr, nb::sig("def __repr__(self) -> str"));
  nb::class_<provider_resource, resource>(
      module, "ProviderResource",
      "The driver's own allocator: ProviderResource(kind=\"device\", device=None,\n"
      "context=None).\n\n"
      "`device` None: the first of `context`, else the current one; `context` None: the\n"
      "device's default one. Raises UnsupportedError for a kind that the device has not.")
      .def("__init__", &init_provider, nb::arg("kind") = "device", nb::arg("device") = nb::none(),
           nb::arg("context") = nb::none(),
           nb::sig("def __init__(self, kind: str = 'device', device: Device | str | None = None, "
                   "context: Context | None = None) -> None"));
  nb::class_<pool_resource, resource>(
      module, "PoolResource",
      "Keeps what is freed for what comes next: PoolResource(kind=\"device\", device=None,\n"
      "context=None, *, initial_bytes=0, growth_bytes=None, limit_bytes=None, checked=True,\n"
      "remap=True, soft_limit_bytes=None, budget=None, decay=None).\n\n"
      "`device` and `context` as for ProviderResource. `initial_bytes` are asked of the driver\n"
      "at once, at least `growth_bytes` (None: 32 MiB, or 1/128 of what it holds if its memory\n"
      "can move) at a time later, and never more than `limit_bytes` in all (None: no limit).\n"
      "Beyond `soft_limit_bytes` all that is free goes back before the pool grows, and then by\n"
      "no more than is needed. Sizes are integers or text: \"64MiB\", \"2GiB\", or \"80%\" of the\n"
      "device's memory or, for memory that lies in the host's, of what the process may have of\n"
      "that. `budget`, a Budget, is shared with other pools. What is free and was not needed for\n"
      "`decay` seconds (None: never) goes back within twice that time: as the pool grows or is\n"
      "trimmed, or on a thread of the library that is idle, if there is one already.\n"
      "`checked=False` does not look for misuse of small blocks. Where the device has the\n"
      "capability \"remap\", free memory moves to where a larger request needs it; not with\n"
      "`remap=False`. Requests up to 256 KiB take at most 1/8 more than they ask for, larger\n"
      "ones are rounded up to 64 KiB. Memory freed behind work on a queue is reused at once on\n"
      "that queue, elsewhere when that work has ended. Raises USMAllocationError where the\n"
      "driver has too little or a limit is met, UnsupportedError as ProviderResource.")
      .def("__init__", &init_pool, nb::arg("kind") = "device", nb::arg("device") = nb::none(),
           nb::arg("context") = nb::none(), nb::kw_only(), nb::arg("initial_bytes") = 0,
           nb::arg("growth_bytes") = nb::none(), nb::arg("limit_bytes") = nb::none(),
           nb::arg("checked") = true, nb::arg("remap") = true,
           nb::arg("soft_limit_bytes") = nb::none(), nb::arg("budget") = nb::none(),
           nb::arg("decay") = nb::none(),
           nb::sig("def __init__(self, kind: str = 'device', device: Device | str | None = None, "
                   "context: Context | None = None, *, initial_bytes: int | str = 0, "
                   "growth_bytes: int | str | None = None, limit_bytes: int | str | None = None, "
                   "checked: bool = True, remap: bool = True, "
                   "soft_limit_bytes: int | str | None = None, budget: Budget | None = None, "
                   "decay: float | None = None) -> None"))
      .def_prop_ro(
          "limit_bytes", [](const pool_resource& self) { return limit_or_none(self.limit_bytes); },
          nb::sig("def limit_bytes(self) -> int | None"), "The most it may hold; None: no limit.")
      .def_prop_ro(
          "soft_limit_bytes",
          [](const pool_resource& self) { return limit_or_none(self.soft_limit_bytes); },
          nb::sig("def soft_limit_bytes(self) -> int | None"),
          "Beyond it free memory goes back before it grows; None: no such limit.")
      .def_prop_ro(
          "budget", [](const pool_resource& self) { return self.budget_object; },
          nb::sig("def budget(self) -> Budget | None"), "What it shares with other pools.")
      .def_prop_ro(
          "decay", [](const pool_resource& self) { return self.decay; },
          nb::sig("def decay(self) -> float | None"),
          "Seconds after which free memory that was not needed goes back; None: never.")
      .def("__repr__", &pool_repr, nb::sig("def __repr__(self) -> str"));
  bind_adaptors(module);
  module.def(
      "live", &live, nb::arg("kind") = nb::none(),
      nb::sig("def live(kind: str | None = None) -> tuple[int, int]"),
      "(allocations, bytes) that live in this process, of one kind (None: all). Memory whose\n"
      "free waits for work in flight counts.");
}

}  // namespace isthmus::python
