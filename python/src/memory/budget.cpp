// SPDX-License-Identifier: Apache-2.0
// A limit on the memory of several pools together.

#include "memory/budget.hpp"

#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "memory/bindings.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

void init_budget(Budget* self, nb::handle limit, nb::handle queue, nb::handle kind) {
  const nb::object device_object = queue.is_none() ? nb::object{} : to_device(queue);
  const auto bytes = to_bytes(limit, "limit", device_object, to_kind(kind));
  new (self) Budget{make_handle<BudgetHandle>(isthmus_budget_create, bytes)};
}

isthmus_budget_info_t info_of(const Budget& budget) {
  return read_info<isthmus_budget_info_t>(isthmus_budget_info, budget.raw.get());
}

}  // namespace

std::uint64_t to_bytes_for(nb::handle upstream, nb::handle value, const char* name,
                           PercentOf percent_of) {
  const auto& resource = require_resource(upstream, "upstream");
  return to_bytes(value, name,
                  percent_of == PercentOf::device ? device_of_resource(resource) : nb::handle{},
                  resource.kind);
}

void bind_budget(nb::module_& module) {
  nb::class_<Budget> type(
      module, "Budget", nb::is_weak_referenceable(),
      "Limits the memory, in use and free, that several pools together hold of their drivers:\n"
      "Budget(limit, device=None, kind=\"device\"), passed to PoolResource(..., budget=...).\n\n"
      "`limit` is in bytes, or text: \"2GiB\", or \"80%\" of the memory of `kind` that `device`\n"
      "has. A pool that would exceed the limit first releases its own free memory, then requests\n"
      "that the other pools release free memory, and finally raises USMAllocationError, which\n"
      "lists the bytes that each pool holds. Small and recently freed blocks in the caches of\n"
      "threads other than the requesting one do not count as free. Safe to use from any thread.");
  types.budget = type;
  using Info = isthmus_budget_info_t;
  const auto number = [&](const char* name, std::uint64_t Info::*field, const char* doc) {
    type.def_prop_ro(name, [field](const Budget& self) { return info_of(self).*field; }, doc);
  };
  type.def("__init__", &init_budget, nb::arg("limit").none(), nb::arg("device") = nb::none(),
           nb::arg("kind").none() = "device",
           nb::sig("def __init__(self, limit: ByteCount, device: Device | str | None = None, "
                   "kind: str = 'device') -> None"));
  number("limit_bytes", &Info::limit_bytes, "The most bytes that its pools may hold together.");
  number("held_bytes", &Info::held_bytes,
         "Bytes that its pools hold, and those of destroyed pools with blocks still in use.");
  number("free_bytes", &Info::free_bytes, "Held bytes that no buffer, thread or size class uses.");
  number("peak_held_bytes", &Info::peak_held_bytes, "The maximum of held_bytes so far.");
  number("pools", &Info::pools, "Number of live pools.");
  number("refusals", &Info::refusals, "Number of pool requests that did not fit at once.");
  number("released_bytes", &Info::released_bytes,
         "Bytes that pools have released for other pools so far.");
  bind_repr(type, "budget");
}

}  // namespace isthmus::python
