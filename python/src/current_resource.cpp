// Where buffers come from when no resource is named: what `with using(resource):` set for this
// thread or task, else what was set for the process, else the driver.

#include "arguments.hpp"
#include "current.hpp"
#include "errors.hpp"
#include "resources.hpp"

namespace isthmus::python {

bool resources_in_use = false;

namespace {

struct using_resource {
  nb::object resource;
};

// The variable holds a stack, (resource, the stack below) or None, as that of the current queue.
PyObject* using_stack = nullptr;
// Of the process: one resource for each context and kind, the one set last.
PyObject* process_resources = nullptr;

nb::object stack_of_context() {
  PyObject* stack = nullptr;
  if (PyContextVar_Get(using_stack, nullptr, &stack) != 0) {
    raise_set();
  }
  return nb::steal(stack);
}

void set_stack_of_context(nb::handle stack) {
  PyObject* token = PyContextVar_Set(using_stack, stack.ptr());
  if (token == nullptr) {
    raise_set();
  }
  Py_DECREF(token);
}

isthmus_context_t* context_raw(const queue& of) { return context_of(of.context_object)->raw.get(); }

bool serves(const resource& candidate, isthmus_kind_t kind, isthmus_context_t* within) {
  return candidate.kind == kind &&
         isthmus_context_key(context_raw(*queue_of(candidate.queue_object))) ==
             isthmus_context_key(within);
}

nb::object find_in_stack(isthmus_kind_t kind, isthmus_context_t* within) {
  const nb::object stack = stack_of_context();
  for (PyObject* at = stack.ptr(); at != Py_None; at = PyTuple_GET_ITEM(at, 1)) {
    PyObject* top = PyTuple_GET_ITEM(at, 0);
    if (serves(*nb::inst_ptr<resource>(top), kind, within)) {
      return nb::borrow(top);
    }
  }
  return {};
}

// -1: none.
Py_ssize_t place_in_process(isthmus_kind_t kind, isthmus_context_t* within) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(process_resources); ++i) {
    if (serves(*nb::inst_ptr<resource>(PyList_GET_ITEM(process_resources, i)), kind, within)) {
      return i;
    }
  }
  return -1;
}

void init_using(using_resource* self, nb::handle chosen) {
  static_cast<void>(require_resource(chosen, "resource"));
  new (self) using_resource{nb::borrow(chosen)};
}

nb::object enter_using(const using_resource& self) {
  set_stack_of_context(nb::make_tuple(self.resource, stack_of_context()));
  resources_in_use = true;
  return self.resource;
}

void leave_using(const using_resource& self, nb::args) {
  const nb::object stack = stack_of_context();
  if (stack.is_none() || PyTuple_GET_ITEM(stack.ptr(), 0) != self.resource.ptr()) {
    raise_python(PyExc_RuntimeError,
                 "%R is not the one used here: leave resources in the reverse order, in the thread "
                 "or task that entered them",
                 self.resource.ptr());
  }
  set_stack_of_context(nb::borrow(PyTuple_GET_ITEM(stack.ptr(), 1)));
}

void set_resource(nb::handle chosen) {
  const auto& wanted = require_resource(chosen, "resource");
  const auto place = place_in_process(wanted.kind, context_raw(*queue_of(wanted.queue_object)));
  const int failed =
      place < 0 ? PyList_Append(process_resources, chosen.ptr())
                : PyList_SetItem(process_resources, place, nb::borrow(chosen).release().ptr());
  if (failed != 0) {
    raise_set();
  }
  resources_in_use = true;
}

nb::object resource_now(nb::handle kind, nb::handle device, nb::handle on) {
  const nb::object queue = to_queue(on, device);
  const nb::object found = current_resource(to_kind(kind), *queue_of(queue));
  return found.is_valid() ? found : nb::none();
}

}  // namespace

nb::object current_resource(isthmus_kind_t kind, const queue& on) {
  if (!resources_in_use) {
    return {};
  }
  auto* within = context_raw(on);
  nb::object found = find_in_stack(kind, within);
  if (found.is_valid()) {
    return found;
  }
  const auto place = place_in_process(kind, within);
  return place < 0 ? nb::object{} : nb::borrow(PyList_GET_ITEM(process_resources, place));
}

void forget_resources() noexcept {
  if (PyList_SetSlice(process_resources, 0, PyList_GET_SIZE(process_resources), nullptr) != 0) {
    PyErr_Clear();
  }
}

void bind_current_resource(nb::module_& module) {
  using_stack = PyContextVar_New("isthmus.using", Py_None);
  process_resources = PyList_New(0);
  if (using_stack == nullptr || process_resources == nullptr) {
    raise_set();
  }
  nb::class_<using_resource>(
      module, "using",
      "`with isthmus.using(resource):` - buffers of its kind and context for which no resource is\n"
      "named come from it, in this thread or asyncio task and in tasks that it starts meanwhile.\n"
      "Nests; resources of other kinds and contexts stay as they are.")
      .def("__init__", &init_using, nb::arg("resource").none(),
           nb::sig("def __init__(self, resource: MemoryResource) -> None"))
      .def("__enter__", &enter_using, nb::sig("def __enter__(self) -> MemoryResource"))
      .def("__exit__", &leave_using, nb::sig("def __exit__(self, *exc: object) -> None"));
  module.def(
      "set_resource", &set_resource, nb::arg("resource").none(),
      nb::sig("def set_resource(resource: MemoryResource) -> None"),
      "From here on buffers of its kind and context for which no resource is named come from\n"
      "it, in every thread; `using` goes before. A ProviderResource: the driver, again.");
  module.def(
      "current_resource", &resource_now, nb::arg("kind") = "device", nb::arg("device") = nb::none(),
      nb::arg("queue") = nb::none(),
      nb::sig("def current_resource(kind: str = 'device', device: Device | str | None = "
              "None, queue: Queue | None = None) -> MemoryResource | None"),
      "What Buffer(nbytes, kind=kind, device=device, queue=queue) would come from; None: the\n"
      "driver.");
}

}  // namespace isthmus::python
