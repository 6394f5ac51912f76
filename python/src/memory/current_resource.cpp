// SPDX-License-Identifier: Apache-2.0
// The current resource, which serves requests that name none. It is the one that `with
// using(resource):` set for this thread or task, else the one set for the process, else the default
// pool. An entry of None on the stack selects the driver: it is for functions that resources call,
// which could otherwise request memory from themselves.

#include "core/arguments.hpp"
#include "core/context_stack.hpp"
#include "core/current.hpp"
#include "memory/bindings.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {

bool resources_in_use = false;

namespace {

struct UsingResource {
  nb::object resource;
};

ContextStack using_stack;
// The current resources of the process: the last one set for each kind, context and device.
PyObject* process_resources = nullptr;

// Host memory belongs to no device.
bool serves(const Resource& candidate, isthmus_kind_t kind, const Queue& queue) {
  const auto& candidate_queue = *nb::inst_ptr<Queue>(candidate.queue_object);
  return candidate.kind == kind && candidate_queue.context_key == queue.context_key &&
         (kind == ISTHMUS_KIND_HOST || candidate_queue.device_key == queue.device_key);
}

// Returns None for the driver. If the result is not valid, the resource of the process applies.
nb::object find_in_stack(isthmus_kind_t kind, const Queue& queue) {
  const nb::object stack = using_stack.all();
  for (nb::handle node = stack; !node.is_none(); node = ContextStack::below(node)) {
    const nb::handle top = ContextStack::top_of(node);
    if (top.is_none() || serves(*nb::inst_ptr<Resource>(top), kind, queue)) {
      return nb::borrow(top);
    }
  }
  return {};
}

// -1 if there is none.
Py_ssize_t index_in_process(isthmus_kind_t kind, const Queue& queue) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(process_resources); ++i) {
    if (serves(*nb::inst_ptr<Resource>(PyList_GET_ITEM(process_resources, i)), kind, queue)) {
      return i;
    }
  }
  return -1;
}

void init_using(UsingResource* self, nb::handle chosen) {
  static_cast<void>(require_resource(chosen, "resource"));
  new (self) UsingResource{nb::borrow(chosen)};
}

nb::object enter_using(const UsingResource& self) {
  using_stack.push(self.resource);
  resources_in_use = true;
  return self.resource;
}

void leave_using(const UsingResource& self, nb::args) {
  using_stack.pop(self.resource, "resources");
}

void set_resource(nb::handle chosen) {
  const auto& resource = require_resource(chosen, "resource");
  const auto index = index_in_process(resource.kind, *queue_of(resource.queue_object));
  const int failed =
      index < 0 ? PyList_Append(process_resources, chosen.ptr())
                : PyList_SetItem(process_resources, index, nb::borrow(chosen).release().ptr());
  if (failed != 0) {
    raise_set();
  }
  resources_in_use = true;
}

nb::object query_current_resource(nb::handle kind, nb::handle device, nb::handle target_queue) {
  const nb::object queue = to_queue(target_queue, device);
  const nb::object found = current_resource(to_kind(kind), *queue_of(queue));
  return found.is_valid() ? found : nb::none();
}

}  // namespace

nb::object current_resource(isthmus_kind_t kind, const Queue& queue) {
  if (!resources_in_use) {
    return {};
  }
  nb::object found = find_in_stack(kind, queue);
  if (found.is_valid()) {
    return found.is_none() ? nb::object{} : found;
  }
  const auto index = index_in_process(kind, queue);
  return index < 0 ? nb::object{} : nb::borrow(PyList_GET_ITEM(process_resources, index));
}

DriverAllocationScope::DriverAllocationScope()
    : previous_stack_{resources_in_use ? using_stack.all() : nb::object{}} {
  if (previous_stack_.is_valid()) {
    using_stack.push(nb::none());
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
  if (PyList_SetSlice(process_resources, 0, PyList_GET_SIZE(process_resources), nullptr) != 0) {
    PyErr_Clear();
  }
}

void bind_current_resource(nb::module_& module) {
  using_stack.create("isthmus.using");
  process_resources = PyList_New(0);
  if (process_resources == nullptr) {
    raise_set();
  }
  nb::class_<UsingResource>(
      module, "using",
      "`with isthmus.using(resource):` - `resource` serves buffers of its kind, context and\n"
      "device (host kind: any device) that name no resource, in this thread or asyncio task and\n"
      "in tasks started within it. Nests; other resources are unaffected. Functions that a\n"
      "resource calls (of an allocator, or a failure callback) run outside of any such scope.")
      .def("__init__", &init_using, nb::arg("resource").none(),
           nb::sig("def __init__(self, resource: MemoryResource) -> None"))
      .def("__enter__", &enter_using, nb::sig("def __enter__(self) -> MemoryResource"))
      .def("__exit__", &leave_using, nb::sig("def __exit__(self, *exc: object) -> None"));
  module.def(
      "set_resource", &set_resource, nb::arg("resource").none(),
      nb::sig("def set_resource(resource: MemoryResource) -> None"),
      "From now on `resource` serves buffers of its kind, context and device (host kind: any\n"
      "device) that name no resource, in every thread; `using` takes precedence. A\n"
      "ProviderResource selects the driver's own memory, default_pool(kind, use='buffers')\n"
      "restores the initial state.");
  module.def(
      "current_resource", &query_current_resource, nb::arg("kind").none() = "device",
      nb::arg("device") = nb::none(), nb::arg("queue") = nb::none(),
      nb::sig("def current_resource(kind: str = 'device', device: Device | str | None = "
              "None, queue: Queue | None = None) -> MemoryResource | None"),
      "The resource that Buffer(nbytes, kind=kind, device=device, queue=queue) would use; None:\n"
      "the default pool.");
}

}  // namespace isthmus::python
