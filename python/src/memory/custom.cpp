// SPDX-License-Identifier: Apache-2.0
// Memory resources that are Python objects, and Python functions that are called when there is no
// memory. The library calls them on any thread (callbacks.hpp).

#include "core/arguments.hpp"
#include "memory/bindings.hpp"
#include "memory/callbacks.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

nb::object queue_or_none(isthmus_queue_t* raw) {
  return raw == nullptr ? nb::none() : wrap(QueueHandle::share(raw));
}

// Like `run_callback_unraisable`, but if the call came from Python, the exception is raised there.
template <class Body>
void run_callback_reporting(nb::handle object, Body body) noexcept {
  if (has_exception_scope()) {
    const char* message = nullptr;
    static_cast<void>(run_callback(&message, body));
  } else {
    run_callback_unraisable(object, body);
  }
}

isthmus_status_t allocate(void* owner, size_t nbytes, size_t alignment, isthmus_queue_t* queue,
                          void** pointer, const char** message) noexcept {
  return run_callback(message, [&] {
    const nb::object address =
        held_by(owner).attr("allocate")(nbytes, alignment, queue_or_none(queue));
    *pointer = to_pointer(address, "the result of allocate()");
  });
}

void deallocate(void* owner, void* pointer, size_t nbytes, isthmus_queue_t* queue) noexcept {
  run_callback_unraisable(held_by(owner), [&] {
    held_by(owner).attr("deallocate")(reinterpret_cast<std::uintptr_t>(pointer), nbytes,
                                      queue_or_none(queue));
  });
}

void usage(void* owner, std::uint64_t* held_bytes, std::uint64_t* free_bytes) noexcept {
  run_callback_reporting(held_by(owner), [=] {
    const nb::object usage_pair = held_by(owner).attr("usage")();
    const auto held = to_size(usage_pair[0], "held bytes");
    *free_bytes = to_size(usage_pair[1], "free bytes");
    *held_bytes = held;
  });
}

std::uint64_t trim(void* owner, std::uint64_t keep_bytes) noexcept {
  std::uint64_t released_bytes = 0;
  run_callback_reporting(held_by(owner), [&] {
    released_bytes = to_size(held_by(owner).attr("trim")(keep_bytes), "released bytes");
  });
  return released_bytes;
}

bool has_method(nb::handle object, const char* name) {
  return nb::hasattr(object, name) && PyCallable_Check(object.attr(name).ptr()) != 0;
}

void init_custom(CustomResource* self, nb::handle allocator, nb::handle kind, nb::handle queue,
                 nb::handle context) {
  for (const char* name : {"allocate", "deallocate"}) {
    if (!has_method(allocator, name)) {
      raise_python(PyExc_TypeError, "allocator must have a method %s, which %.100s lacks", name,
                   Py_TYPE(allocator.ptr())->tp_name);
    }
  }
  ResourceTarget target{kind, queue, context};
  auto operations = sized<isthmus_resource_operations_t>();
  operations.allocate = &allocate;
  operations.deallocate = &deallocate;
  operations.usage = has_method(allocator, "usage") ? &usage : nullptr;
  operations.trim = has_method(allocator, "trim") ? &trim : nullptr;
  construct_resource(
      self, CustomResource{{make_handle<ResourceHandle>(
                                isthmus_resource_custom, target.context, target.device_raw(),
                                target.kind, &operations, defer_owner(new HeldObject{allocator})),
                            target.kind, std::move(target.queue)},
                           nb::borrow(allocator)});
}

isthmus_status_t call_failure_callback(void* owner, size_t nbytes, int* retry,
                                       const char** message) noexcept {
  return run_callback(message, [&] {
    const nb::object result = held_by(owner)(nbytes);
    const int truth = PyObject_IsTrue(result.ptr());
    if (truth < 0) {
      raise_set();
    }
    *retry = truth;
  });
}

void init_failure(FailureCallbackResource* self, nb::handle upstream, nb::handle function) {
  static_cast<void>(require_resource(upstream, "upstream"));
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_wrong_type(function, "function must be callable");
  }
  construct_resource(self, FailureCallbackResource{make_adaptor(
                               upstream, isthmus_resource_failure_callback, &call_failure_callback,
                               defer_owner(new HeldObject{function}))});
}

}  // namespace

void bind_custom(nb::module_& module) {
  nb::class_<CustomResource, Resource>(
      module, "CustomResource",
      "A resource implemented in Python: CustomResource(allocator, kind=\"device\", device=None,\n"
      "context=None).\n\n"
      "`allocator.allocate(nbytes, alignment, queue)` returns the address of memory of that kind,\n"
      "or raises MemoryError if it has none left. `allocator.deallocate(pointer, nbytes, queue)`\n"
      "releases it after all work on it has completed, and must not wait for work on a queue. Its\n"
      "exceptions go to sys.unraisablehook. Both are called on any thread, also concurrently, but\n"
      "not while the interpreter ends or in a forked child. Two methods are optional: `usage()`\n"
      "returns (held, free) bytes, and `trim(keep_bytes)` the bytes released. `device` and\n"
      "`context` are those of ProviderResource.\n\n"
      "Exceptions of allocate are raised by Buffer(). Exceptions of usage and trim are raised to\n"
      "the caller whose request called them. The result of allocate is checked: CallbackError for\n"
      "0, for an address that is not aligned, and for memory that is not of this kind and device\n"
      "as far as the driver can tell. It may return the address of a part of a Buffer, which then\n"
      "lives as long as the part. Buffers that these methods create come from the driver unless\n"
      "they name a resource.\n\n"
      "The allocator lives as long as the resource and its memory. An object that holds its own\n"
      "resource is never collected: make the allocator a separate object.")
      .def("__init__", &init_custom, nb::arg("allocator").none(), nb::arg("kind").none() = "device",
           nb::arg("device") = nb::none(), nb::arg("context") = nb::none(),
           nb::sig("def __init__(self, allocator: Allocator, kind: str = 'device', device: Device "
                   "| str | None = None, context: Context | None = None) -> None"))
      .def_prop_ro(
          "allocator", [](const CustomResource& self) { return self.allocator; },
          nb::sig("def allocator(self) -> Allocator"), "The object whose methods it calls.");
  nb::class_<FailureCallbackResource, AdaptorResource>(
      module, "FailureCallbackResource",
      "Calls a function when there is no memory: FailureCallbackResource(upstream, function).\n\n"
      "`function(nbytes)` is called on the requesting thread, with no lock held. It may free and\n"
      "allocate (from the driver unless a resource is named), and returns whether to try again.\n"
      "An exception that it raises fails the request. The function lives as long as the resource\n"
      "and its memory: a method of an object that holds the resource keeps both alive\n"
      "indefinitely.")
      .def("__init__", &init_failure, nb::arg("upstream").none(), nb::arg("function").none(),
           nb::sig("def __init__(self, upstream: MemoryResource, function: Callable[[int], bool]) "
                   "-> None"));
}

}  // namespace isthmus::python
