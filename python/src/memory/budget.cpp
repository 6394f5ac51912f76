// SPDX-License-Identifier: Apache-2.0
// A limit on the memory of several pools together.

#include "memory/budget.hpp"

#include "core/byte_counts.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "memory/bindings.hpp"

namespace isthmus::python {
namespace {

void init_budget(Budget* self, nb::handle limit, nb::handle queue, nb::handle kind) {
  const nb::object device_object = queue.is_none() ? nb::object{} : to_device(queue);
  const auto bytes = to_bytes(limit, "limit", device_object, to_kind(kind));
  BudgetHandle budget;
  check(isthmus_budget_create(bytes, budget.out()));
  new (self) Budget{std::move(budget)};
}

isthmus_budget_info_t info_of(const Budget& budget) {
  isthmus_budget_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_budget_info(budget.raw.get(), &info));
  return info;
}

nb::object budget_repr(const Budget& self) {
  const auto info = info_of(self);
  return nb::steal(PyUnicode_FromFormat(
      "<isthmus.Budget of %llu bytes, %llu held by %llu pools, %llu free>",
      static_cast<unsigned long long>(info.limit_bytes),
      static_cast<unsigned long long>(info.held_bytes), static_cast<unsigned long long>(info.pools),
      static_cast<unsigned long long>(info.free_bytes)));
}

}  // namespace

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
  const auto number = [&](const char* name, auto field, const char* signature, const char* text) {
    type.def_prop_ro(
        name, [field](const Budget& self) { return info_of(self).*field; }, nb::sig(signature),
        text);
  };
  type.def("__init__", &init_budget, nb::arg("limit").none(), nb::arg("device") = nb::none(),
           nb::arg("kind").none() = "device",
           nb::sig("def __init__(self, limit: ByteCount, device: Device | str | None = None, "
                   "kind: str = 'device') -> None"));
  number("limit_bytes", &isthmus_budget_info_t::limit_bytes, "def limit_bytes(self) -> int",
         "The most bytes that its pools may hold together.");
  number("held_bytes", &isthmus_budget_info_t::held_bytes, "def held_bytes(self) -> int",
         "Bytes that its pools hold, and those of destroyed pools with blocks still in use.");
  number("free_bytes", &isthmus_budget_info_t::free_bytes, "def free_bytes(self) -> int",
         "Held bytes that no buffer, thread or size class uses.");
  number("peak_held_bytes", &isthmus_budget_info_t::peak_held_bytes,
         "def peak_held_bytes(self) -> int", "The maximum of held_bytes so far.");
  number("pools", &isthmus_budget_info_t::pools, "def pools(self) -> int", "Number of live pools.");
  number("refusals", &isthmus_budget_info_t::refusals, "def refusals(self) -> int",
         "Number of pool requests that did not fit at once.");
  number("released_bytes", &isthmus_budget_info_t::released_bytes,
         "def released_bytes(self) -> int",
         "Bytes that pools have released for other pools so\n"
         "far.");
  type.def("__repr__", &budget_repr, nb::sig("def __repr__(self) -> str"));
}

}  // namespace isthmus::python
