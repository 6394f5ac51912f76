// SPDX-License-Identifier: Apache-2.0
// Adaptors over other memory resources: statistics and their scopes, limit, fallback.

#include "core/arguments.hpp"
#include "core/context_stack.hpp"
#include "memory/bindings.hpp"
#include "memory/budget.hpp"
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
  return read_info<isthmus_statistics_info_t>(isthmus_statistics_info, self.raw.get());
}

isthmus_statistics_info_t counts_of(const StatisticsScope& self) {
  auto counts = sized<isthmus_statistics_info_t>();
  if (self.raw) {
    check(isthmus_scope_info(self.raw.get(), &counts));
  }
  return counts;
}

// In the order of bind_counts; the first two are signed.
nb::object net_counts_of(const StatisticsScope& self) {
  auto counts = sized<isthmus_statistics_info_t>();
  if (self.raw) {
    check(isthmus_scope_net_info(self.raw.get(), &counts));
  }
  return nb::make_tuple(static_cast<std::int64_t>(counts.current_bytes),
                        static_cast<std::int64_t>(counts.current_count), counts.peak_bytes,
                        counts.peak_count, counts.total_bytes, counts.total_count);
}

template <class Class, class Bound>
void bind_counts(Bound& bound) {
  const auto count = [&](const char* name, auto field, const char* doc) {
    bound.def_prop_ro(name, [field](const Class& self) { return counts_of(self).*field; }, doc);
  };
  using Raw = isthmus_statistics_info_t;
  count("current_bytes", &Raw::current_bytes, "The requested bytes of live allocations.");
  count("current_count", &Raw::current_count, "Number of live allocations.");
  count("peak_bytes", &Raw::peak_bytes, "The maximum of current_bytes so far.");
  count("peak_count", &Raw::peak_count, "The maximum of current_count so far.");
  count("total_bytes", &Raw::total_bytes, "Bytes of all allocations so far.");
  count("total_count", &Raw::total_count, "Number of allocations so far.");
}

void init_statistics(StatisticsResource* self, nb::handle upstream) {
  construct_resource(self, StatisticsResource{make_adaptor(upstream, isthmus_resource_statistics)});
}

void init_limit(LimitResource* self, nb::handle upstream, nb::handle limit_bytes) {
  const auto limit = to_bytes_for(upstream, limit_bytes, "limit_bytes", PercentOf::device);
  construct_resource(self, LimitResource{make_adaptor(upstream, isthmus_resource_limit, limit)});
}

void init_fallback(FallbackResource* self, nb::handle first, nb::handle second) {
  static_cast<void>(require_resource(first, "first"));
  auto* const other = require_resource(second, "second").raw.get();
  construct_resource(self, FallbackResource{make_adaptor(first, isthmus_resource_fallback, other),
                                            nb::borrow(second)});
}

template <std::uint64_t isthmus_limit_info_t::*Field>
std::uint64_t limit_field(const LimitResource& self) {
  return read_info<isthmus_limit_info_t>(isthmus_limit_info, self.raw.get()).*Field;
}

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
      .def_prop_ro("limit_bytes", &limit_field<&isthmus_limit_info_t::limit_bytes>,
                   "The maximum of in_use_bytes.")
      .def_prop_ro("in_use_bytes", &limit_field<&isthmus_limit_info_t::in_use_bytes>,
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
