// SPDX-License-Identifier: Apache-2.0
#include "array_pools.hpp"

#include "arguments.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus::python {
namespace {

// Without the interpreter's lock: a new pool probes the driver, and creating it may destroy others.
resource make_pool(isthmus_kind_t kind, const queue& on, pool_use use) {
  resource made;
  isthmus_status_t status;
  {
    const gil_release released;
    status = isthmus_default_pool(on.raw.get(), kind,
                                  use == pool_use::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0,
                                  made.raw.out());
  }
  check(status);
  made.kind = kind;
  made.is_pool = true;
  return made;
}

pool_use to_use(nb::handle name) {
  if (PyUnicode_Check(name.ptr()) == 0) {
    raise_python(PyExc_TypeError, "use must be 'arrays' or 'buffers', not %R", name.ptr());
  }
  if (PyUnicode_CompareWithASCIIString(name.ptr(), "arrays") == 0) {
    return pool_use::arrays;
  }
  if (PyUnicode_CompareWithASCIIString(name.ptr(), "buffers") != 0) {
    raise_python(PyExc_ValueError, "use must be 'arrays' or 'buffers', not %R", name.ptr());
  }
  return pool_use::buffers;
}

// Creates a PoolResource for a pool that has none, or whose PoolResource is gone.
nb::object wrap_pool(const resource& pool, nb::object queue) {
  auto kept = resource_handle::retained(pool.raw.get());
  const auto kind = pool.kind;
  if (nb::object known = find_resource(kept.get()); known.is_valid()) {
    return known;
  }
  nb::object made = nb::inst_alloc(nb::type<pool_resource>());
  auto* const where = nb::inst_ptr<pool_resource>(made);
  new (where) pool_resource{{std::move(kept), kind, std::move(queue), false, true},
                            0,
                            0,
                            nb::none(),
                            nb::float_(10.0),
                            nb::float_(1.0),
                            nb::none()};
  remember_resource(*where, made);
  nb::inst_mark_ready(made);
  return made;
}

nb::object default_pool_of(nb::handle kind, nb::handle device, nb::handle queue, nb::handle use) {
  nb::object on = to_queue(queue, device);
  const auto& pool = default_pool(to_kind(kind), *queue_of(on), to_use(use));
  return wrap_pool(pool, std::move(on));
}

}  // namespace

void device_pools::trim() noexcept {
  const held_gil_release released;
  for (const auto& each : entries_) {
    static_cast<void>(isthmus_resource_trim(each.pool->raw.get(), 0, nullptr));
  }
}

const resource& device_pools::make(isthmus_kind_t kind, const queue& on, pool_use use) {
  auto made = std::make_unique<resource>(make_pool(kind, on, use));
  if (const auto* found = find(kind, on, use)) {
    return *found;  // created by another thread meanwhile
  }
  if (entries_.size() >= k_most) {
    drop_empty();
  }
  return *entries_.emplace_back(kind, use, on.context_key, std::move(made)).pool;
}

void device_pools::drop_empty() noexcept {
  std::erase_if(entries_, [](const entry& each) {
    isthmus_resource_info_t seen{};
    seen.struct_size = sizeof seen;
    return isthmus_resource_query(each.pool->raw.get(), &seen) == ISTHMUS_OK &&
           seen.held_bytes == 0;
  });
}

const resource& make_default_pool(isthmus_kind_t kind, const queue& on, pool_use use) {
  auto& of = *nb::inst_ptr<device>(on.device_object);
  if (!of.pools) {
    of.pools = std::make_unique<device_pools>();
  }
  return of.pools->make(kind, on, use);
}

void bind_array_pools(nb::module_& module) {
  module.def(
      "default_pool", &default_pool_of, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(), nb::kw_only(),
      nb::arg("use").none() = "arrays",
      nb::sig("def default_pool(kind: str = 'device', device: Device | str | None = None, queue: "
              "Queue | None = None, *, use: str = 'arrays') -> PoolResource"),
      "The pool that serves requests for that kind of memory on that device when no resource is\n"
      "named or current. Created on first use, one for all languages. Memory that was not\n"
      "needed for 10 s is returned to the driver; trim() returns free memory at once. `use`:\n"
      "\"arrays\" or \"buffers\", which have the same pool except on CUDA, where memory of\n"
      "buffers can be shared with other processes. Raises UnsupportedError for a kind that the\n"
      "device does not have.");
}

}  // namespace isthmus::python
