// SPDX-License-Identifier: Apache-2.0
#include "array_pools.hpp"

#include "arguments.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus::python {
namespace {

// Without the interpreter's lock: a new pool probes the driver, and creating it may destroy others.
Resource make_pool(isthmus_kind_t kind, const Queue& queue, PoolUse use) {
  Resource made;
  isthmus_status_t status;
  {
    const GilRelease released;
    status = isthmus_default_pool(queue.raw.get(), kind,
                                  use == PoolUse::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0,
                                  made.raw.out());
  }
  check(status);
  made.kind = kind;
  made.is_pool = true;
  return made;
}

PoolUse to_use(nb::handle name) {
  if (PyUnicode_Check(name.ptr()) == 0) {
    raise_python(PyExc_TypeError, "use must be 'arrays' or 'buffers', not %R", name.ptr());
  }
  if (PyUnicode_CompareWithASCIIString(name.ptr(), "arrays") == 0) {
    return PoolUse::arrays;
  }
  if (PyUnicode_CompareWithASCIIString(name.ptr(), "buffers") != 0) {
    raise_python(PyExc_ValueError, "use must be 'arrays' or 'buffers', not %R", name.ptr());
  }
  return PoolUse::buffers;
}

// Creates a PoolResource for a pool that has none, or whose PoolResource is gone.
nb::object wrap_pool(const Resource& pool, nb::object queue) {
  auto kept = ResourceHandle::retained(pool.raw.get());
  const auto kind = pool.kind;
  if (nb::object known = find_resource(kept.get()); known.is_valid()) {
    return known;
  }
  nb::object made = nb::inst_alloc(nb::type<PoolResource>());
  auto* const where = nb::inst_ptr<PoolResource>(made);
  new (where) PoolResource{{std::move(kept), kind, std::move(queue), false, true},
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

void DevicePools::trim() noexcept {
  const HeldGilRelease released;
  for (const auto& each : entries_) {
    static_cast<void>(isthmus_resource_trim(each.pool->raw.get(), 0, nullptr));
  }
}

const Resource& DevicePools::make(isthmus_kind_t kind, const Queue& queue, PoolUse use) {
  auto made = std::make_unique<Resource>(make_pool(kind, queue, use));
  if (const auto* found = find(kind, queue, use)) {
    return *found;  // created by another thread meanwhile
  }
  if (entries_.size() >= k_most) {
    drop_empty();
  }
  return *entries_.emplace_back(kind, use, queue.context_key, std::move(made)).pool;
}

void DevicePools::drop_empty() noexcept {
  std::erase_if(entries_, [](const Entry& each) {
    isthmus_resource_info_t seen{};
    seen.struct_size = sizeof seen;
    return isthmus_resource_query(each.pool->raw.get(), &seen) == ISTHMUS_OK &&
           seen.held_bytes == 0;
  });
}

const Resource& make_default_pool(isthmus_kind_t kind, const Queue& queue, PoolUse use) {
  auto& of = *nb::inst_ptr<Device>(queue.device_object);
  if (!of.pools) {
    of.pools = std::make_unique<DevicePools>();
  }
  return of.pools->make(kind, queue, use);
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
