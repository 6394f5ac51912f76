// Memory resources that are Python objects, and Python functions that are asked for memory.

#include <string>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "owners.hpp"
#include "resources.hpp"

namespace isthmus::python {
namespace {

// Dies with the interpreter's lock held, by way of the deferred list.
struct held_object final : deferred {
  explicit held_object(nb::handle held) : object{nb::borrow(held)} {}
  nb::object object;
};

nb::handle held_by(void* owner) noexcept {
  return static_cast<held_object*>(static_cast<deferred*>(owner))->object;
}

nb::object queue_or_none(isthmus_queue_t* raw) {
  return raw == nullptr ? nb::none() : wrap(queue_handle::retained(raw));
}

// Calls Python for the library, on whichever thread: an exception is carried to the call that the
// library was in.
template <class Body>
isthmus_status_t call_back(const char** message, Body body) noexcept {
  const callback_lock lock;
  if (!lock) {
    *message = "a Python function was not called: the interpreter is ending";
    return ISTHMUS_ERROR_CALLBACK;
  }
  try {
    body();
    return ISTHMUS_OK;
  } catch (nb::python_error& failed) {
    const bool no_memory = failed.matches(PyExc_MemoryError);
    *message = carry_exception(failed);
    return no_memory ? ISTHMUS_ERROR_OUT_OF_MEMORY : ISTHMUS_ERROR_CALLBACK;
  } catch (const std::exception&) {
    *message = "MemoryError";
    return ISTHMUS_ERROR_OUT_OF_MEMORY;
  }
}

// The same where nobody can be told but sys.unraisablehook. May be called while an exception is
// under way, which stays.
template <class Body>
void call_back_unraisable(nb::handle of, Body body) noexcept {
  const callback_lock lock;
  if (!lock) {
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    body();
  } catch (nb::python_error& failed) {
    failed.restore();
    PyErr_WriteUnraisable(of.ptr());
  } catch (const std::exception&) {
    PyErr_NoMemory();
    PyErr_WriteUnraisable(of.ptr());
  }
  PyErr_Restore(type, value, trace);
}

isthmus_status_t allocate(void* owner, size_t nbytes, size_t alignment, isthmus_queue_t* queue,
                          void** pointer, const char** message) noexcept {
  return call_back(message, [&] {
    const nb::object given =
        held_by(owner).attr("allocate")(nbytes, alignment, queue_or_none(queue));
    *pointer = to_pointer(given, "what allocate() returned");
  });
}

void deallocate(void* owner, void* pointer, size_t nbytes, isthmus_queue_t* queue) noexcept {
  call_back_unraisable(held_by(owner), [&] {
    held_by(owner).attr("deallocate")(reinterpret_cast<std::uintptr_t>(pointer), nbytes,
                                      queue_or_none(queue));
  });
}

void usage(void* owner, std::uint64_t* held_bytes, std::uint64_t* free_bytes) noexcept {
  call_back_unraisable(held_by(owner), [&] {
    const nb::object told = held_by(owner).attr("usage")();
    *held_bytes = to_size(told[0], "held bytes");
    *free_bytes = to_size(told[1], "free bytes");
  });
}

std::uint64_t trim(void* owner, std::uint64_t keep_bytes) noexcept {
  std::uint64_t given_back = 0;
  call_back_unraisable(held_by(owner), [&] {
    given_back = to_size(held_by(owner).attr("trim")(keep_bytes), "bytes given back");
  });
  return given_back;
}

bool has_method(nb::handle object, const char* name) {
  return nb::hasattr(object, name) && PyCallable_Check(object.attr(name).ptr()) != 0;
}

void init_custom(custom_resource* self, nb::handle allocator, nb::handle kind, nb::handle on,
                 nb::handle in) {
  for (const char* name : {"allocate", "deallocate"}) {
    if (!has_method(allocator, name)) {
      raise_python(PyExc_TypeError, "allocator must have a method %s, which %.100s has not", name,
                   Py_TYPE(allocator.ptr())->tp_name);
    }
  }
  purpose what{kind, on, in};
  isthmus_resource_operations_t table{};
  table.struct_size = sizeof table;
  table.allocate = &allocate;
  table.deallocate = &deallocate;
  table.usage = has_method(allocator, "usage") ? &usage : nullptr;
  table.trim = has_method(allocator, "trim") ? &trim : nullptr;
  resource_handle made;
  check(isthmus_resource_custom(what.within, what.device_raw(), what.kind, &table,
                                defer_owner(new held_object{allocator}), made.out()));
  new (self) custom_resource{{std::move(made), what.kind, std::move(what.queue), false},
                             nb::borrow(allocator)};
}

isthmus_status_t ask(void* owner, size_t nbytes, int* retry, const char** message) noexcept {
  return call_back(message, [&] {
    const nb::object told = held_by(owner)(nbytes);
    const int truth = PyObject_IsTrue(told.ptr());
    if (truth < 0) {
      raise_set();
    }
    *retry = truth;
  });
}

void init_failure(failure_resource* self, nb::handle upstream, nb::handle function) {
  const auto& under = require_resource(upstream, "upstream");
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_python(PyExc_TypeError, "function must be callable, not %.100s",
                 Py_TYPE(function.ptr())->tp_name);
  }
  resource_handle made;
  check(isthmus_resource_on_failure(under.raw.get(), &ask, defer_owner(new held_object{function}),
                                    made.out()));
  new (self) failure_resource{over(upstream, std::move(made))};
}

}  // namespace

void bind_custom(nb::module_& module) {
  nb::class_<custom_resource, resource>(
      module, "CustomResource",
      "A resource of your own: CustomResource(allocator, kind=\"device\", device=None,\n"
      "context=None).\n\n"
      "`allocator.allocate(nbytes, alignment, queue)` returns the address of memory of that kind,\n"
      "or raises: MemoryError where it has none left. `allocator.deallocate(pointer, nbytes,\n"
      "queue)` takes it back, when no work uses it any more; what it raises goes to\n"
      "sys.unraisablehook. Both are called on any thread, several at a time; neither while the\n"
      "interpreter ends, nor in a forked child. Where the allocator has them, `usage()` returns\n"
      "(held, free) bytes and `trim(keep_bytes)` the bytes given back. `device` and `context` as\n"
      "for ProviderResource.\n\n"
      "What allocate raises is raised by Buffer(). What it returns is checked: CallbackError for\n"
      "0, for an address that is not aligned, for memory that is not of this kind as far as the\n"
      "driver can tell. It may return the address of a part of a Buffer, which then lives as long\n"
      "as the part.")
      .def("__init__", &init_custom, nb::arg("allocator"), nb::arg("kind") = "device",
           nb::arg("device") = nb::none(), nb::arg("context") = nb::none(),
           nb::sig("def __init__(self, allocator: Allocator, kind: str = 'device', device: Device "
                   "| str | None = None, context: Context | None = None) -> None"))
      .def_prop_ro(
          "allocator", [](const custom_resource& self) { return self.allocator; },
          nb::sig("def allocator(self) -> Allocator"), "The object that it calls.");
  nb::class_<failure_resource, adaptor_resource>(
      module, "FailureCallbackResource",
      "Asks a function where there is no memory: FailureCallbackResource(upstream, function).\n\n"
      "`function(nbytes)` is called on the thread that asked, with no lock held; it may free and\n"
      "allocate, and returns whether to try again. What it raises ends the request.")
      .def("__init__", &init_failure, nb::arg("upstream").none(), nb::arg("function").none(),
           nb::sig("def __init__(self, upstream: MemoryResource, function: Callable[[int], bool]) "
                   "-> None"));
}

}  // namespace isthmus::python
