// SPDX-License-Identifier: Apache-2.0
// The current resource, which serves requests that name none: the library's, so that it is the same
// in every language (isthmus_current_resource).
//
// The library's `using` blocks belong to threads, those of Python also to asyncio tasks. The blocks
// of `with using(resource):` are therefore on a stack in a context variable, and a call from Python
// runs in the innermost one (WithinUsing).

#include <algorithm>
#include <vector>

#include "core/arguments.hpp"
#include "core/context_stack.hpp"
#include "core/current.hpp"
#include "memory/bindings.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {

const std::uint32_t* const current_resource_users = isthmus_current_resource_watch();

namespace {

struct UsingResource {
  nb::object resource;  // None: the default pools
};

// An entry of the stack, in a capsule.
struct EnteredBlock {
  nb::object resource;
  OwnedHandle<UsingHandle> block;
};

ContextStack using_stack;
// Keeps alive the objects of the resources that Python set for the process, so that they are found
// again. Never destroyed.
auto& process_resources = *new std::vector<nb::object>;

const Resource& resource_in(nb::handle object) { return *nb::inst_ptr<Resource>(object); }
const EnteredBlock& block_in(nb::handle capsule) {
  return *static_cast<EnteredBlock*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
}

// Host memory belongs to no device.
bool serves(const Resource& candidate, isthmus_kind_t kind, const Queue& queue) {
  const auto& candidate_queue = *nb::inst_ptr<Queue>(candidate.queue_object);
  return candidate.kind == kind && candidate_queue.context_key == queue.context_key &&
         (kind == ISTHMUS_KIND_HOST || candidate_queue.device_key == queue.device_key);
}

// The resource of the innermost block of Python if it serves the request, found without a call of
// the library, which would find the same; else not valid.
nb::object resource_of_innermost(isthmus_kind_t kind, const Queue& queue) {
  const nb::object top = using_stack.top();
  if (top.is_none()) {
    return {};
  }
  const auto& resource = block_in(top).resource;
  return !resource.is_none() && serves(resource_in(resource), kind, queue) ? resource
                                                                           : nb::object{};
}

// What the process uses for the requests that `resource` serves; null: no resource.
ResourceHandle process_resource_like(const Resource& resource) noexcept {
  auto* const queue = queue_of(resource.queue_object)->raw.get();
  ResourceHandle current;
  auto* const block = isthmus_using_swap(nullptr);
  static_cast<void>(
      isthmus_current_resource(queue, resource.kind, ISTHMUS_NO_DEFAULT_POOL, current.out()));
  isthmus_using_swap(block);
  return current;
}

// Removes the resources that the process no longer uses. Threads set resources without the
// interpreter's lock, in an order that only the library knows. The objects and handles are released
// at the end, since that may run any code.
void forget_replaced_resources() {
  std::vector<ResourceHandle> current(process_resources.size());
  std::vector<nb::object> removed;
  removed.reserve(process_resources.size());
  for (std::size_t index = 0; index < current.size(); ++index) {
    auto& each = process_resources[index];
    current[index] = process_resource_like(resource_in(each));
    if (current[index].get() != resource_in(each).raw.get()) {
      removed.push_back(std::move(each));
    }
  }
  std::erase_if(process_resources, [](const nb::object& each) { return !each.is_valid(); });
}

void remember_process_resource(nb::handle chosen) {
  const auto is_chosen = [chosen](const nb::object& each) { return each.is(chosen); };
  if (std::none_of(process_resources.begin(), process_resources.end(), is_chosen)) {
    process_resources.push_back(nb::borrow(chosen));
  }
}

// Null for None: the default pools.
isthmus_resource_t* raw_or_null(nb::handle chosen) {
  return chosen.is_none() ? nullptr : require_resource(chosen, "resource").raw.get();
}

void init_using(UsingResource* self, nb::handle chosen) {
  static_cast<void>(raw_or_null(chosen));
  new (self) UsingResource{nb::borrow(chosen)};
}

nb::object enter_using(const UsingResource& self) {
  UsingHandle block;
  {
    const WithinUsing outer;
    check(isthmus_using_create(raw_or_null(self.resource), block.out()));
  }
  auto entered = std::make_unique<EnteredBlock>(self.resource, std::move(block));
  const nb::capsule entry{
      entered.get(), [](void* pointer) noexcept { delete static_cast<EnteredBlock*>(pointer); }};
  static_cast<void>(entered.release());
  using_stack.push(entry);
  return self.resource;
}

void leave_using(const UsingResource& self, nb::args) {
  const nb::object top = using_stack.top();
  const bool is_innermost = !top.is_none() && block_in(top).resource.is(self.resource);
  using_stack.pop(is_innermost ? top : self.resource, "resources");
}

void set_resource(nb::handle chosen) {
  auto* const raw = raw_or_null(chosen);
  check(without_lock([raw] { return isthmus_current_resource_set(raw); }));
  if (raw != nullptr) {
    remember_process_resource(chosen);
  }
  forget_replaced_resources();
}

void reset_resource(nb::handle kind_name, nb::handle device, nb::handle target_queue) {
  const nb::object queue_object = to_queue(target_queue, device);
  const auto kind = to_kind(kind_name);
  const auto& queue = *queue_of(queue_object);
  check(without_lock([&] { return isthmus_current_resource_reset(queue.raw.get(), kind); }));
  forget_replaced_resources();
}

nb::object query_current_resource(nb::handle kind, nb::handle device, nb::handle target_queue) {
  const nb::object queue = to_queue(target_queue, device);
  const nb::object found = current_resource(to_kind(kind), *queue_of(queue));
  return found.is_valid() ? found : nb::none();
}

// Resets the process' resource if other code has not replaced it before this call.
void reset_if_current(const Resource& resource) noexcept {
  if (process_resource_like(resource).get() == resource.raw.get()) {
    auto* const queue = queue_of(resource.queue_object)->raw.get();
    static_cast<void>(isthmus_current_resource_reset(queue, resource.kind));
  }
}

}  // namespace

nb::object current_resource(isthmus_kind_t kind, const Queue& queue) {
  if (!resources_in_use()) {
    return {};
  }
  if (nb::object resource = resource_of_innermost(kind, queue); resource.is_valid()) {
    return resource;
  }
  ResourceHandle found;
  {
    const WithinUsing block;
    check(isthmus_current_resource(queue.raw.get(), kind, ISTHMUS_NO_DEFAULT_POOL, found.out()));
  }
  return found ? wrap_resource(std::move(found), kind, nb::find(&queue)) : nb::object{};
}

namespace {

UsingHandle block_of_context() {
  if (!resources_in_use()) {
    return {};
  }
  const nb::object top = using_stack.top();
  return top.is_none() ? UsingHandle{} : UsingHandle::share(block_in(top).block.get());
}

}  // namespace

WithinUsing::WithinUsing()
    : block_{block_of_context()}, outer_{block_ ? isthmus_using_swap(block_.get()) : nullptr} {}

DriverAllocationScope::DriverAllocationScope()
    : previous_stack_{resources_in_use() ? using_stack.all() : nb::object{}} {
  if (previous_stack_.is_valid()) {
    using_stack.set(nb::none());
  }
  ++depth_;
}

DriverAllocationScope::~DriverAllocationScope() {
  --depth_;
  if (!previous_stack_.is_valid()) {
    return;
  }
  try {
    using_stack.set(previous_stack_);
  } catch (nb::python_error& failed) {
    failed.discard_as_unraisable("isthmus.using");
  }
}

void clear_resources() noexcept {
  for (const auto& each : process_resources) {
    reset_if_current(resource_in(each));
  }
  const auto removed = std::exchange(process_resources, {});
}

void bind_current_resource(nb::module_& module) {
  using_stack.create("isthmus.using");
  nb::class_<UsingResource>(
      module, "using",
      "`with isthmus.using(resource):` - `resource` serves buffers of its kind, context and\n"
      "device (host kind: any device) that name no resource, in this thread or asyncio task and\n"
      "in tasks started within it. None: the default pools serve all of them. Nests; other\n"
      "resources are unaffected. Functions that a resource calls (of an allocator, or a failure\n"
      "callback) run outside of any such scope, and so do C and C++ functions that are called\n"
      "within it.")
      .def("__init__", &init_using, nb::arg("resource").none(),
           nb::sig("def __init__(self, resource: MemoryResource | None) -> None"))
      .def("__enter__", &enter_using, nb::sig("def __enter__(self) -> MemoryResource | None"))
      .def("__exit__", &leave_using, nb::sig("def __exit__(self, *exc: object) -> None"));
  module.def(
      "set_resource", &set_resource, nb::arg("resource").none(),
      nb::sig("def set_resource(resource: MemoryResource | None) -> None"),
      "From now on `resource` serves buffers of its kind, context and device (host kind: any\n"
      "device) that name no resource, in every thread and in every language of the process;\n"
      "`using` takes precedence. It is kept alive until it is replaced or reset. A\n"
      "ProviderResource selects the driver's own memory. None restores the default pools of every\n"
      "kind, context and device. Thread-safe.");
  module.def(
      "reset_resource", &reset_resource, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(),
      nb::sig("def reset_resource(kind: str = 'device', device: Device | str | None = None, queue: "
              "Queue | None = None) -> None"),
      "Restores the default pool for one kind of memory of a device, in the context of the queue,\n"
      "after set_resource. Arguments as for current_resource. Thread-safe. Raises\n"
      "UnsupportedError for a kind that the device does not have.");
  module.def("_resources_in_use", &resources_in_use, nb::sig("def _resources_in_use() -> bool"));
  module.def(
      "current_resource", &query_current_resource, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(),
      nb::sig("def current_resource(kind: str = 'device', device: Device | str | None = "
              "None, queue: Queue | None = None) -> MemoryResource | None"),
      "The resource that Buffer(nbytes, kind=kind, device=device, queue=queue) would use; None:\n"
      "the default pool. A resource that C or C++ set has the class MemoryResource.");
}

}  // namespace isthmus::python
