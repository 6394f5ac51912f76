// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocator: the resources that serve it, the addresses of its functions, its usage.

#include <mutex>

#include "core/cuda_streams.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "frameworks/bindings.hpp"
#include "frameworks/torch_hooks.hpp"
#include "memory/default_pools.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

unsigned next_number = 1;  // 0 is the shared allocator

// Returns the same number for the same resource. PyTorch may hold the functions indefinitely, so a
// number is never reused for another resource.
unsigned number_for(const Resource& resource) {
  auto* const raw = resource.raw.get();
  for (unsigned each = 1; each < next_number; ++each) {
    if (torch_allocator(each).custom_resource() == raw) {
      return each;
    }
  }
  if (next_number == k_torch_allocators) {
    raise_python(
        PyExc_RuntimeError,
        "PyTorch can use at most %u resources in one process, and all are in use: use one of them",
        k_torch_allocators - 1);
  }
  torch_allocator(next_number).set_resource(raw);
  return next_number++;
}

unsigned torch_number(nb::handle chosen) {
  if (chosen.is_none()) {
    return 0;
  }
  const auto& resource = require_resource(chosen, "resource");
  const auto info = info_of(resource);
  if (number_of_cuda_device(info.device) < 0 || info.kinds != 1U << ISTHMUS_KIND_DEVICE) {
    raise_python(PyExc_ValueError,
                 "resource must be of device memory of a CUDA device, not %S: use "
                 "PoolResource(\"device\", \"cuda:0\")",
                 chosen.ptr());
  }
  return number_for(resource);
}

// Reserves a set of functions whose resources can change: see `StreamAllocator::follow`.
unsigned torch_following() {
  if (next_number == k_torch_allocators) {
    raise_python(PyExc_RuntimeError,
                 "PyTorch uses %u resources already, the most that one process can have",
                 k_torch_allocators - 1);
  }
  return next_number++;
}

void torch_follow(unsigned number, int device, nb::handle chosen) {
  auto* const raw = chosen.is_none() ? nullptr : require_resource(chosen, "resource").raw.get();
  const GilRelease released;
  torch_allocator(number).follow(device, resource::share(raw));
}

nb::object torch_functions(unsigned number) {
  nb::dict functions;
  for (const auto& hook : hooks_of(number)) {
    functions[hook.name] = hook.address;
  }
  return functions;
}

template <class Body>
auto translate_errors(Body body) {
  try {
    const GilRelease released;
    return body();
  } catch (const std::runtime_error& problem) {
    raise_python(PyExc_RuntimeError, "%s", problem.what());
  }
}

nb::object torch_usage(unsigned number, int device) {
  const auto usage = translate_errors([=] { return torch_allocator(number).usage(device); });
  const auto& counts = usage.counts;
  const auto& memory = usage.memory;
  nb::dict fields;
  fields["live_bytes"] = counts.current_bytes;
  fields["live_count"] = counts.current_count;
  fields["peak_live_bytes"] = counts.peak_bytes;
  fields["total_bytes"] = counts.total_bytes;
  fields["total_count"] = counts.total_count;
  fields["held_bytes"] = memory.held;
  fields["peak_held_bytes"] =
      usage.peak_held_bytes ? nb::object{nb::int_(*usage.peak_held_bytes)} : nb::none();
  fields["free_bytes"] = memory.free;
  fields["maps"] = memory.maps;
  fields["unmaps"] = memory.unmaps;
  return fields;
}

// The pool that serves a device if no resource is named, for all frameworks.
nb::object device_pool(int device) {
  auto* const raw = translate_errors([=] { return torch_allocator(0).upstream_for(device); });
  return wrap_pool(ResourceHandle::share(raw), ISTHMUS_KIND_DEVICE,
                   default_queue_of(*device_of(wrap(find_cuda_device(device)))), nb::none());
}

}  // namespace

void bind_torch(nb::module_& module) {
  module.def("torch_number", &torch_number, nb::arg("resource").none(),
             nb::sig("def torch_number(resource: MemoryResource | None) -> int"),
             "The number of the set of functions that use this resource.");
  module.def("torch_following", &torch_following, nb::sig("def torch_following() -> int"),
             "The number of a set of functions that use the resources last set by torch_follow.");
  module.def("torch_follow", &torch_follow, nb::arg("number"), nb::arg("device"),
             nb::arg("resource").none(),
             nb::sig("def torch_follow(number: int, device: int, resource: MemoryResource | None) "
                     "-> None"),
             "Makes the resource serve that device; None: a pool of the allocator.");
  module.def("torch_functions", &torch_functions, nb::arg("number"),
             nb::sig("def torch_functions(number: int) -> dict[str, int]"),
             "The addresses of the functions, by the names of PyTorch's setters.");
  module.def("torch_usage", &torch_usage, nb::arg("number"), nb::arg("device"),
             nb::sig("def torch_usage(number: int, device: int) -> dict[str, Any]"),
             "The fields of isthmus.torch.Stats.");
  module.def("device_pool", &device_pool, nb::arg("device"),
             nb::sig("def device_pool(device: int) -> PoolResource"),
             "The pool for the CUDA device of that number, if frameworks name no resource.");
}

}  // namespace isthmus::python
