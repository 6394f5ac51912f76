// SPDX-License-Identifier: Apache-2.0
// Adaptors over other memory resources: statistics and their scopes, limit, fallback.

#include "core/arguments.hpp"
#include "core/byte_counts.hpp"
#include "core/context_stack.hpp"
#include "memory/bindings.hpp"
#include "memory/resources.hpp"
#include "memory/scopes.hpp"

namespace isthmus::python {

bool scopes_in_use = false;

namespace {

struct StatisticsResource : AdaptorResource {};
struct LimitResource : AdaptorResource {};
struct FallbackResource : AdaptorResource {
  nb::object second;
};

struct StatisticsScope {
  nb::object counted;
  ScopeHandle raw{};
};
nb::handle scope_type;

ContextStack scopes;  // the statistics scopes

isthmus_scope_t* raw_scope(nb::handle object) {
  return object.is_none() ? nullptr : nb::inst_ptr<StatisticsScope>(object)->raw.get();
}

nb::object enter_scope(nb::pointer_and_handle<StatisticsScope> self) {
  if (self.p->raw) {
    raise_python(PyExc_RuntimeError,
                 "a statistics() scope can be entered only once: call statistics() again");
  }
  check(isthmus_scope_create(nb::inst_ptr<Resource>(self.p->counted)->raw.get(),
                             raw_scope(scopes.top()), self.p->raw.out()));
  scopes.push(self.h);
  scopes_in_use = true;
  return nb::borrow(self.h);
}

void leave_scope(nb::pointer_and_handle<StatisticsScope> self, nb::args) {
  scopes.pop(self.h, "scopes");
}

isthmus_statistics_info_t counts_of(const StatisticsResource& self) {
  isthmus_statistics_info_t counts{};
  counts.struct_size = sizeof counts;
  check(isthmus_statistics_info(self.raw.get(), &counts));
  return counts;
}

isthmus_statistics_info_t counts_of(const StatisticsScope& self) {
  isthmus_statistics_info_t counts{};
  counts.struct_size = sizeof counts;
  if (self.raw) {
    check(isthmus_scope_info(self.raw.get(), &counts));
  }
  return counts;
}

// In the order of bind_counts; the first two are signed.
nb::object net_counts_of(const StatisticsScope& self) {
  isthmus_statistics_info_t counts{};
  counts.struct_size = sizeof counts;
  if (self.raw) {
    check(isthmus_scope_net_info(self.raw.get(), &counts));
  }
  return nb::make_tuple(static_cast<std::int64_t>(counts.current_bytes),
                        static_cast<std::int64_t>(counts.current_count), counts.peak_bytes,
                        counts.peak_count, counts.total_bytes, counts.total_count);
}

template <class Class, std::uint64_t isthmus_statistics_info_t::*Field>
std::uint64_t count(const Class& self) {
  return counts_of(self).*Field;
}

template <class Class, class Bound>
void bind_counts(Bound& bound) {
  using Raw = isthmus_statistics_info_t;
  bound
      .def_prop_ro("current_bytes", &count<Class, &Raw::current_bytes>,
                   nb::sig("def current_bytes(self) -> int"),
                   "The requested bytes of live allocations.")
      .def_prop_ro("current_count", &count<Class, &Raw::current_count>,
                   nb::sig("def current_count(self) -> int"), "Number of live allocations.")
      .def_prop_ro("peak_bytes", &count<Class, &Raw::peak_bytes>,
                   nb::sig("def peak_bytes(self) -> int"), "The maximum of current_bytes so far.")
      .def_prop_ro("peak_count", &count<Class, &Raw::peak_count>,
                   nb::sig("def peak_count(self) -> int"), "The maximum of current_count so far.")
      .def_prop_ro("total_bytes", &count<Class, &Raw::total_bytes>,
                   nb::sig("def total_bytes(self) -> int"), "Bytes of all allocations so far.")
      .def_prop_ro("total_count", &count<Class, &Raw::total_count>,
                   nb::sig("def total_count(self) -> int"), "Number of allocations so far.");
}

void init_statistics(StatisticsResource* self, nb::handle upstream) {
  const auto& upstream_resource = require_resource(upstream, "upstream");
  ResourceHandle resource;
  check(isthmus_resource_statistics(upstream_resource.raw.get(), resource.out()));
  construct_resource(self, StatisticsResource{make_adaptor(upstream, std::move(resource))});
}

void init_limit(LimitResource* self, nb::handle upstream, nb::handle limit_bytes) {
  const auto& upstream_resource = require_resource(upstream, "upstream");
  const auto limit = to_bytes(limit_bytes, "limit_bytes", device_of_resource(upstream_resource),
                              upstream_resource.kind);
  ResourceHandle resource;
  check(isthmus_resource_limit(upstream_resource.raw.get(), limit, resource.out()));
  construct_resource(self, LimitResource{make_adaptor(upstream, std::move(resource))});
}

void init_fallback(FallbackResource* self, nb::handle first, nb::handle second) {
  const auto& first_resource = require_resource(first, "first");
  const auto& second_resource = require_resource(second, "second");
  ResourceHandle resource;
  check(isthmus_resource_fallback(first_resource.raw.get(), second_resource.raw.get(),
                                  resource.out()));
  construct_resource(
      self, FallbackResource{make_adaptor(first, std::move(resource)), nb::borrow(second)});
}

isthmus_limit_info_t info_of(const LimitResource& self) {
  isthmus_limit_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_limit_info(self.raw.get(), &info));
  return info;
}

std::uint64_t in_use_of(const LimitResource& self) { return info_of(self).in_use_bytes; }

std::uint64_t limit_of(const LimitResource& self) { return info_of(self).limit_bytes; }

void bind_statistics(nb::module_& module) {
  nb::class_<StatisticsScope> scope(
      module, "StatisticsScope",
      "Counts allocations from a StatisticsResource within `with resource.statistics() as s:`, by\n"
      "this thread or asyncio task and by tasks started within it, and the release of that\n"
      "memory, wherever and whenever it happens. Scopes nest: outer scopes include the counts of\n"
      "inner ones. May be read at any time, on any thread. A scope can be entered only once.\n"
      "Allocations of native code count in the scopes that it entered through the C interface;\n"
      "Buffers created meanwhile count there if no Python scope is entered.");
  scope_type = scope;
  bind_counts<StatisticsScope>(scope);
  scope
      .def("_net", &net_counts_of, nb::sig("def _net(self) -> tuple[int, int, int, int, int, int]"),
           "The same counts, minus memory allocated outside of the scope and freed within it.")
      .def("__enter__", &enter_scope, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_scope, nb::sig("def __exit__(self, *exc: object) -> None"));
  nb::class_<StatisticsResource, AdaptorResource> counted(
      module, "StatisticsResource",
      "Counts the allocations that go through it: StatisticsResource(upstream).\n\n"
      "Counts are exact, also with several threads. A Buffer counts until it is freed, even if\n"
      "its memory is returned later, after pending work has completed.");
  bind_counts<StatisticsResource>(counted);
  counted
      .def("__init__", &init_statistics, nb::arg("upstream").none(),
           nb::sig("def __init__(self, upstream: MemoryResource) -> None"))
      .def(
          "reset",
          [](const StatisticsResource& self) { check(isthmus_statistics_reset(self.raw.get())); },
          nb::sig("def reset(self) -> None"),
          "Sets the peaks to the current counts and the totals to 0.")
      .def(
          "statistics",
          [](nb::pointer_and_handle<StatisticsResource> self) {
            return make_instance<StatisticsScope>(scope_type, nb::borrow(self.h));
          },
          nb::sig("def statistics(self) -> StatisticsScope"),
          "Returns a scope to enter: `with resource.statistics() as s:`.");
}

}  // namespace

// An error that is set while an object is destroyed must remain set.
void FreeWithinScope::enter() noexcept {
  nb::error_scope saved_error;
  try {
    scope_ = current_scope();
    outer_ = scope_ ? isthmus_scope_swap(scope_.get()) : nullptr;
  } catch (const std::exception&) {
    PyErr_Clear();
  }
}

ScopeHandle current_scope() { return ScopeHandle::share(raw_scope(scopes.top())); }

void bind_adaptors(nb::module_& module) {
  scopes.create("isthmus.statistics");
  nb::class_<AdaptorResource, Resource>(
      module, "AdaptorResource",
      "Base of the resources over one upstream, which have its kind, device, context and queue.\n"
      "Memory that an adaptor allocates is returned to it, and through it to its upstream.")
      .def("__init__", &raise_abstract)
      .def_prop_ro(
          "upstream", [](const AdaptorResource& self) { return self.upstream; },
          nb::sig("def upstream(self) -> MemoryResource"),
          "The resource that this one obtains its memory from.");
  bind_statistics(module);
  nb::class_<LimitResource, AdaptorResource>(
      module, "LimitResource",
      "Limits the bytes that are live at a time: LimitResource(upstream, limit_bytes).\n\n"
      "A request that would exceed the limit, in bytes as requested, raises USMAllocationError,\n"
      "which names the request, the limit and the bytes in use. The limit is an integer or text:\n"
      "\"4GiB\", or \"80%\" of the device's memory or, for memory that resides on the host, of\n"
      "the host memory that the process may use.")
      .def("__init__", &init_limit, nb::arg("upstream").none(), nb::arg("limit_bytes").none(),
           nb::sig("def __init__(self, upstream: MemoryResource, limit_bytes: ByteCount) -> None"))
      .def_prop_ro("limit_bytes", &limit_of, nb::sig("def limit_bytes(self) -> int"),
                   "The maximum of in_use_bytes.")
      .def_prop_ro("in_use_bytes", &in_use_of, nb::sig("def in_use_bytes(self) -> int"),
                   "The requested bytes of live allocations.");
  nb::class_<FallbackResource, AdaptorResource>(
      module, "FallbackResource",
      "Uses a second resource when the first has no memory: FallbackResource(first, second).\n\n"
      "The second must be of the same context (WrongContextError). It may be of another kind; the\n"
      "`kind` of a Buffer is that of its memory.")
      .def("__init__", &init_fallback, nb::arg("first").none(), nb::arg("second").none(),
           nb::sig("def __init__(self, first: MemoryResource, second: MemoryResource) -> None"))
      .def_prop_ro(
          "second", [](const FallbackResource& self) { return self.second; },
          nb::sig("def second(self) -> MemoryResource"),
          "The resource that is used when `upstream` has no memory.");
  bind_request_adaptors(module);
  bind_custom(module);
  bind_tracking(module);
  bind_cutting(module);
  bind_debug(module);
}

}  // namespace isthmus::python
