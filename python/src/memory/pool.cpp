// SPDX-License-Identifier: Apache-2.0
// PoolResource.

#include <algorithm>

#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/interruptible.hpp"
#include "memory/bindings.hpp"
#include "memory/budget.hpp"
#include "memory/pressure.hpp"
#include "memory/resources.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

// Converts a limit from text or a number; 0 for None.
std::uint64_t to_limit(nb::handle value, const char* name, nb::handle device, isthmus_kind_t kind) {
  if (value.is_none()) {
    return 0;
  }
  const auto bytes = to_bytes(value, name, device, kind);
  if (bytes == 0) {
    raise_python(PyExc_ValueError, "%s must be above 0 bytes, or None for no limit, not %R", name,
                 value.ptr());
  }
  return bytes;
}

isthmus_budget_t* to_budget(nb::handle value) {
  const auto* budget = value.is_none() ? nullptr : instance_of<Budget>(types.budget, value);
  if (budget == nullptr && !value.is_none()) {
    raise_wrong_type(value, "budget must be a Budget or None");
  }
  return budget == nullptr ? nullptr : budget->raw.get();
}

// Converts the decay to nanoseconds; 0 for None.
std::uint64_t to_decay(nb::handle seconds) {
  if (seconds.is_none()) {
    return 0;
  }
  if (!(to_seconds(seconds, "decay") > 0)) {
    raise_python(PyExc_ValueError, "decay must be above 0 seconds, or None for no decay, not %R",
                 seconds.ptr());
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, to_nanoseconds(seconds, "decay")));
}

// Converts the wait to nanoseconds, as in the options: negative means no wait.
std::int64_t to_wait_ns(nb::handle seconds) {
  const auto nanoseconds = to_nanoseconds(seconds, "wait");
  if (nanoseconds == k_infinite) {
    raise_python(
        PyExc_ValueError,
        "wait must be at most a year, not %R seconds: a wait without a limit may deadlock, since "
        "the awaited work may need the waiting thread",
        seconds.ptr());
  }
  return nanoseconds == 0 ? -1 : nanoseconds;
}

// The arguments of PoolResource other than those of every resource.
struct PoolArguments {
  nb::handle initial_bytes, growth_bytes, limit_bytes;
  nb::handle checked, remap;
  nb::handle soft_limit_bytes, budget, decay, wait;
  nb::handle device_wait;

  [[nodiscard]] isthmus_pool_options_t options(nb::handle device, isthmus_kind_t kind) const {
    auto options = sized<isthmus_pool_options_t>();
    options.initial_bytes = size_to_allocate(
        kind, device, [&] { return to_bytes(initial_bytes, "initial_bytes", device, kind); });
    if (!growth_bytes.is_none()) {
      options.growth_bytes = to_bytes(growth_bytes, "growth_bytes", device, kind);
    }
    options.limit_bytes = to_limit(limit_bytes, "limit_bytes", device, kind);
    options.flags =
        (to_flag(checked, "checked") ? 0U : std::uint32_t{ISTHMUS_POOL_UNCHECKED}) |
        (to_flag(remap, "remap") ? 0U : std::uint32_t{ISTHMUS_POOL_NO_REMAP}) |
        (to_flag(device_wait, "device_wait") ? std::uint32_t{ISTHMUS_POOL_DEVICE_WAIT} : 0U);
    options.soft_limit_bytes = to_limit(soft_limit_bytes, "soft_limit_bytes", device, kind);
    options.budget = to_budget(budget);
    options.decay_ns = to_decay(decay);
    options.wait_ns = to_wait_ns(wait);
    return options;
  }
};

// Calls `create` with the interpreter's lock released.
template <class Create>
void make_pool(PoolResource* self, const PoolArguments& arguments,
               const isthmus_pool_options_t& options, Resource base_resource, nb::handle upstream,
               Create create) {
  call_interruptibly([&] { return create(&options, base_resource.raw.out()); });
  construct_resource(
      self, PoolResource{std::move(base_resource), options.limit_bytes, options.soft_limit_bytes,
                         nb::borrow(arguments.budget), nb::borrow(arguments.decay),
                         nb::borrow(arguments.wait), nb::borrow(upstream)});
}

void init_pool_over(PoolResource* self, nb::handle upstream, nb::handle initial_bytes,
                    nb::handle growth_bytes, nb::handle limit_bytes, nb::handle checked,
                    nb::handle soft_limit_bytes, nb::handle shared, nb::handle decay,
                    nb::handle wait, nb::handle device_wait) {
  const auto& upstream_resource = require_resource(upstream, "upstream");
  const PoolArguments arguments{initial_bytes,    growth_bytes, limit_bytes, checked, Py_False,
                                soft_limit_bytes, shared,       decay,       wait,    device_wait};
  make_pool(self, arguments,
            arguments.options(device_of_resource(upstream_resource), upstream_resource.kind),
            {{}, upstream_resource.kind, upstream_resource.queue_object, false, true, true},
            upstream, [&](const isthmus_pool_options_t* options, isthmus_resource_t** pool) {
              return isthmus_resource_pool_over(upstream_resource.raw.get(), options, pool);
            });
}

// A resource in place of the kind is an upstream; nanobind tries the overloads in order.
void init_pool(PoolResource* self, nb::handle kind, nb::handle queue, nb::handle context,
               nb::handle initial_bytes, nb::handle growth_bytes, nb::handle limit_bytes,
               nb::handle checked, nb::handle remap, nb::handle soft_limit_bytes, nb::handle shared,
               nb::handle decay, nb::handle wait, nb::handle device_wait) {
  if (instance_of<Resource>(types.resource, kind) != nullptr) {
    if (!queue.is_none() || !context.is_none()) {
      raise_python(
          PyExc_TypeError,
          "a pool over a resource uses the device and context of that resource: pass neither");
    }
    return init_pool_over(self, kind, initial_bytes, growth_bytes, limit_bytes, checked,
                          soft_limit_bytes, shared, decay, wait, device_wait);
  }
  ResourceTarget target{kind, queue, context};
  const PoolArguments arguments{initial_bytes,    growth_bytes, limit_bytes, checked, remap,
                                soft_limit_bytes, shared,       decay,       wait,    device_wait};
  make_pool(self, arguments, arguments.options(target.device_object, target.kind),
            {{}, target.kind, target.queue, false, true}, nb::none(),
            [&](const isthmus_pool_options_t* options, isthmus_resource_t** pool) {
              return isthmus_resource_pool(target.context, target.device_raw(), target.kind,
                                           options, pool);
            });
}

nb::object limit_or_none(std::uint64_t bytes) {
  return bytes == 0 ? nb::none() : nb::object{nb::int_(bytes)};
}

}  // namespace

void bind_pool(nb::module_& module) {
  nb::class_<PoolResource, Resource> bound(
      module, "PoolResource",
      "Caches freed memory for later requests: PoolResource(kind=\"device\", device=None,\n"
      "context=None, *, initial_bytes=0, growth_bytes=None, limit_bytes=None, checked=True,\n"
      "remap=True, soft_limit_bytes=None, budget=None, decay=None, wait=1.0,\n"
      "device_wait=False), or PoolResource(upstream, *, ...) with the same arguments except\n"
      "remap.\n\n"
      "`device` and `context` are those of ProviderResource. The pool requests `initial_bytes`\n"
      "from the driver at once, and later at least `growth_bytes` per request (None: 32 MiB, or\n"
      "1/128 of the held bytes if its memory can move). It never holds more than `limit_bytes`\n"
      "(None: no limit). Beyond `soft_limit_bytes` it returns all free memory before it grows,\n"
      "and then grows by no more than is needed. Sizes are integers or text: \"64MiB\", \"2GiB\",\n"
      "or \"80%\" of the device's memory or, for memory that resides on the host, of the host\n"
      "memory that the process may use. `budget`, a Budget, is shared with other pools. Free\n"
      "memory that was unused for `decay` seconds (None: never) is returned within twice that\n"
      "time: when the pool grows or is trimmed, or on an idle library thread if there is one. A\n"
      "request without memory waits for at most `wait` seconds (0: not at all; the maximum is a\n"
      "year, because a wait without a limit may deadlock) for the work that uses freed memory,\n"
      "with the interpreter's lock released. With `device_wait=True` the queue first waits for\n"
      "such work on the device, so that the host need not.\n\n"
      "`checked=False` does not check for misuse of small blocks. If the device has the\n"
      "capability \"remap\", free memory is remapped to serve larger requests, unless\n"
      "remap=False. Requests up to 256 KiB take at most 1/8 more than their size; larger ones are\n"
      "rounded up to 64 KiB. Memory freed after work on a queue is reused at once on that queue,\n"
      "and elsewhere after the work has completed. Raises USMAllocationError if the driver has\n"
      "too little memory or a limit is reached, UnsupportedError as ProviderResource does.\n\n"
      "With `upstream`, for example a CustomResource, the pool obtains its memory from that\n"
      "instead of the driver, with its kind, device and context, and the memory does not move.\n"
      "UnsupportedError for an upstream that uses a pool, allocates memory of several kinds, or\n"
      "is monotonic.");
  bind_repr(bound, "pool");
  bound
      .def("__init__", &init_pool, nb::arg("kind").none() = "device",
           nb::arg("device") = nb::none(), nb::arg("context") = nb::none(), nb::kw_only(),
           nb::arg("initial_bytes").none() = 0, nb::arg("growth_bytes") = nb::none(),
           nb::arg("limit_bytes") = nb::none(), nb::arg("checked").none() = true,
           nb::arg("remap").none() = true, nb::arg("soft_limit_bytes") = nb::none(),
           nb::arg("budget") = nb::none(), nb::arg("decay") = nb::none(),
           nb::arg("wait").none() = 1.0, nb::arg("device_wait").none() = false,
           nb::sig("def __init__(self, kind: str = 'device', device: Device | str | None = None, "
                   "context: Context | None = None, *, initial_bytes: ByteCount = 0, "
                   "growth_bytes: ByteCount | None = None, limit_bytes: ByteCount | None = None, "
                   "checked: bool = True, remap: bool = True, "
                   "soft_limit_bytes: ByteCount | None = None, budget: Budget | None = None, "
                   "decay: float | None = None, wait: float = 1.0, "
                   "device_wait: bool = False) -> None"))
      .def("__init__", &init_pool_over, nb::arg("upstream").none(), nb::kw_only(),
           nb::arg("initial_bytes").none() = 0, nb::arg("growth_bytes") = nb::none(),
           nb::arg("limit_bytes") = nb::none(), nb::arg("checked").none() = true,
           nb::arg("soft_limit_bytes") = nb::none(), nb::arg("budget") = nb::none(),
           nb::arg("decay") = nb::none(), nb::arg("wait").none() = 1.0,
           nb::arg("device_wait").none() = false,
           nb::sig("def __init__(self, upstream: MemoryResource, *, initial_bytes: ByteCount = 0, "
                   "growth_bytes: ByteCount | None = None, limit_bytes: ByteCount | None = None, "
                   "checked: bool = True, soft_limit_bytes: ByteCount | None = None, "
                   "budget: Budget | None = None, decay: float | None = None, wait: float = 1.0, "
                   "device_wait: bool = False) -> None"))
      .def_prop_ro(
          "limit_bytes", [](const PoolResource& self) { return limit_or_none(self.limit_bytes); },
          nb::sig("def limit_bytes(self) -> int | None"),
          "The most bytes that the pool may hold; None: no limit.")
      .def_prop_ro(
          "soft_limit_bytes",
          [](const PoolResource& self) { return limit_or_none(self.soft_limit_bytes); },
          nb::sig("def soft_limit_bytes(self) -> int | None"),
          "Before the pool grows beyond this size, it returns free memory; None: no such limit.")
      .def_prop_ro(
          "budget", [](const PoolResource& self) { return self.budget_object; },
          nb::sig("def budget(self) -> Budget | None"),
          "The budget that the pool shares with other pools.")
      .def_prop_ro(
          "decay", [](const PoolResource& self) { return self.decay; },
          nb::sig("def decay(self) -> float | None"),
          "Seconds after which unused free memory is returned to the driver; None: never.")
      .def_prop_ro(
          "wait", [](const PoolResource& self) { return self.wait; },
          nb::sig("def wait(self) -> float"),
          "The most seconds that a request waits for freed memory.")
      .def_prop_ro(
          "upstream", [](const PoolResource& self) { return self.upstream; },
          nb::sig("def upstream(self) -> MemoryResource | None"),
          "The resource that the pool obtains memory from; None: the driver.")
      .def("snapshot", &snapshot_of_pool, nb::sig("def snapshot(self) -> Snapshot"),
           "Describes how the pool's memory is divided now. Takes some milliseconds if the pool\n"
           "is very large.")
      .def_prop_ro(
          "oom_stages", &stages_of_pool,
          nb::sig("def oom_stages(self) -> dict[str, OomStageCounts]"),
          "For each out-of-memory stage, how often it was tried and how often it satisfied the\n"
          "request. In the order in which they are tried: \"collect\", \"collect_idle\", "
          "\"grow\",\n"
          "\"trim\", \"budget\", \"device_wait\", \"callback\", \"wait\".");
}

}  // namespace isthmus::python
