// SPDX-License-Identifier: Apache-2.0
#include "memory/default_pools.hpp"

#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "memory/bindings.hpp"

namespace isthmus::python {
namespace {

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

nb::object default_pool_of(nb::handle kind, nb::handle device, nb::handle queue, nb::handle use) {
  nb::object queue_object = to_queue(queue, device);
  const auto& pool = default_pool(to_kind(kind), *queue_of(queue_object), to_use(use));
  auto handle = ResourceHandle::share(pool.raw.get());
  return wrap_pool(std::move(handle), pool.kind, std::move(queue_object), nb::float_(10.0));
}

}  // namespace

const Resource& make_default_pool(isthmus_kind_t kind, const Queue& queue, PoolUse use) {
  auto& device = *nb::inst_ptr<Device>(queue.device_object);
  if (!device.pools) {
    device.pools = std::make_unique<DevicePools>();
  }
  return device.pools->make(kind, queue.raw.get(), use);
}

nb::object wrap_pool(ResourceHandle raw, isthmus_kind_t kind, nb::object queue, nb::object decay) {
  if (nb::object existing = find_resource(raw.get()); existing.is_valid()) {
    return existing;
  }
  PoolResource pool;
  pool.raw = std::move(raw);
  pool.kind = kind;
  pool.queue_object = std::move(queue);
  pool.is_pool = true;
  pool.budget_object = pool.upstream = nb::none();
  pool.decay = std::move(decay);
  pool.wait = nb::float_(1.0);
  nb::object object = make_instance<PoolResource>(nb::type<PoolResource>(), std::move(pool));
  register_resource(*nb::inst_ptr<PoolResource>(object), object);
  return object;
}

void bind_default_pools(nb::module_& module) {
  module.def(
      "default_pool", &default_pool_of, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(), nb::kw_only(),
      nb::arg("use").none() = "arrays",
      nb::sig("def default_pool(kind: str = 'device', device: Device | str | None = None, queue: "
              "Queue | None = None, *, use: str = 'arrays') -> PoolResource"),
      "The pool that serves requests for that kind of memory on that device when no resource is\n"
      "named or set (current_resource). It is created on first use, and shared by all languages.\n"
      "Memory that was unused for 10 s is returned to the driver; trim() returns free memory at\n"
      "once. `use`: \"arrays\", the default here and in C++, or \"buffers\", the default in C.\n"
      "Both have the same pool except on CUDA, where memory of buffers can be shared with other\n"
      "processes. `device` and `queue` None: the current queue; in C and C++, the default queue\n"
      "of the default device. get_memory_pool() is another pool, of unified buffers. Raises\n"
      "UnsupportedError for a kind that the device does not have.");
}

}  // namespace isthmus::python
