// SPDX-License-Identifier: Apache-2.0
// Snapshots of pools, out-of-memory stages, and the out-of-memory callbacks of Python: functions of
// the program, and before them Python's garbage collection.

#include "memory/pressure.hpp"

#include <array>
#include <chrono>
#include <set>

#include "core/arguments.hpp"
#include "core/interned.hpp"
#include "core/interruptible.hpp"
#include "core/objects.hpp"
#include "core/snapshots.hpp"
#include "memory/bindings.hpp"
#include "memory/callbacks.hpp"
#include "memory/collected_garbage.hpp"

namespace isthmus::python {
namespace {

// Destroyed with the interpreter's lock held, through the deferred list. Guarded by that lock.
struct OomFunction final : Deferred {
  explicit OomFunction(nb::handle callable) : function{nb::borrow(callable)} {}
  nb::object function;  // not valid after the callback was closed
};

struct OomCallback;
// The callbacks that are not closed. Guarded by the interpreter's lock.
std::set<OomCallback*> open_oom_callbacks;

struct OomCallback {
  isthmus_oom_callback_t* raw = nullptr;  // null after close()
  OomFunction* callback = nullptr;        // valid until then

  OomCallback(isthmus_oom_callback_t* added, OomFunction* function)
      : raw{added}, callback{function} {
    open_oom_callbacks.insert(this);
  }
  OomCallback(const OomCallback&) = delete;
  OomCallback& operator=(const OomCallback&) = delete;
  // May run in a garbage collection, on any thread, and while the interpreter ends, so it waits for
  // nothing.
  ~OomCallback() { drop(); }

  [[nodiscard]] isthmus_oom_callback_t* detach() noexcept {
    open_oom_callbacks.erase(this);
    return std::exchange(raw, nullptr);
  }
  void drop() noexcept {
    if (raw != nullptr) {
      const nb::object last = std::move(callback->function);  // may run any code
      isthmus_oom_callback_remove(detach(), 0);
    }
  }
};

std::uint64_t call_oom_callback(nb::handle function, const isthmus_oom_request_t& request) {
  const nb::object result = function(named_tuple("OomRequest")(
      wrap(DeviceHandle::share(request.device)), kind_name(request.kind), request.nbytes));
  return result.is_none() ? 0 : to_size(result, "the result of an out-of-memory callback");
}

std::uint64_t call_function(void* object, const isthmus_oom_request_t* request) {
  auto& callback = *static_cast<OomFunction*>(static_cast<Deferred*>(object));
  const CallbackLock lock;
  if (!lock || !callback.function.is_valid()) {
    return 0;
  }
  const nb::object function = callback.function;
  std::uint64_t bytes = 0;
  run_callback_unraisable(function, [&] { bytes = call_oom_callback(function, *request); });
  return bytes;
}

void init_oom_callback(OomCallback* self, nb::handle function) {
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_wrong_type(function, "function must be callable");
  }
  auto* const callback = new OomFunction{function};
  isthmus_oom_callback_t* added = nullptr;
  check(isthmus_oom_callback_add(&call_function, defer_owner(callback), &added));
  new (self) OomCallback{added, callback};
}

void close_oom_callback(OomCallback& self) {
  if (auto* const raw = self.detach(); raw != nullptr) {
    call_interruptibly([raw] {
      isthmus_oom_callback_remove(raw, 1);
      return ISTHMUS_OK;
    });
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    const auto& oom_callback = *nb::inst_ptr<OomCallback>(self);
    Py_VISIT(oom_callback.raw != nullptr ? oom_callback.callback->function.ptr() : nullptr);
  }
  return 0;
}

int clear(PyObject* self) noexcept {
  if (nb::inst_ready(self)) {
    nb::inst_ptr<OomCallback>(self)->drop();
  }
  return 0;
}

PyType_Slot oom_callback_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                    {0, nullptr}};

nb::object oom_callback_repr(const OomCallback& self) {
  if (self.raw == nullptr) {
    return nb::str("<isthmus.memory.OomCallback, closed>");
  }
  return nb::steal(
      PyUnicode_FromFormat("<isthmus.memory.OomCallback of %R>", self.callback->function.ptr()));
}

// Python's garbage collection as an out-of-memory callback. It runs destructors, so it is called
// only if the thread waits in a function of this module without the lock, where other threads may
// run Python code. It does not re-enter a running collection, on this thread or another (CPython's
// gcmodule), and does nothing if the program called gc.disable(). After a collection that freed no
// buffer, no other collection runs for four times its duration: a program that allocates until no
// memory is left spends at most a fifth of its time in collections. Only memory freed on the device
// that needs it counts: for another device a repeated request to the driver would fail again.
std::uint64_t collect_garbage(void*, const isthmus_oom_request_t* request) {
  using Clock = std::chrono::steady_clock;
  static auto not_before = Clock::time_point::min();  // under the lock
  if (!lock_is_released) {
    return 0;
  }
  const CallbackLock lock;
  const auto begin = Clock::now();
  if (!lock || begin < not_before || collected.runs) {
    return 0;
  }
  collected = {true, device_key_of(request->device), 0};
  PyGC_Collect();
  drain_deferred();
  collected.runs = false;
  if (collected.bytes == 0) {
    const auto end = Clock::now();
    not_before = end + 4 * (end - begin);
  }
  return collected.bytes;
}

}  // namespace

void close_oom_callbacks() noexcept {
  while (!open_oom_callbacks.empty()) {
    (*open_oom_callbacks.begin())->drop();
  }
}

nb::object snapshot_of_pool(const PoolResource& resource) {
  auto raw = sized<isthmus_snapshot_t>();
  check(without_lock([&] { return isthmus_resource_snapshot(resource.raw.get(), &raw); }));
  return to_snapshot(raw);
}

nb::object stages_of_pool(const PoolResource& resource) {
  const nb::object counts = named_tuple("OomStageCounts");
  nb::dict all;
  isthmus_oom_stage_t each = 0;
  while (const char* name = isthmus_oom_stage_name(each)) {
    const auto info =
        read_info<isthmus_oom_stage_info_t>(isthmus_oom_stage_info, resource.raw.get(), each++);
    all[name] = counts(info.tried, info.served);
  }
  return all;
}

void bind_oom_callbacks(nb::module_& module) {
  isthmus_oom_callback_t* garbage = nullptr;  // never released
  check(isthmus_oom_callback_add(&collect_garbage, isthmus_owner_t{}, &garbage));
  nb::class_<OomCallback> bound(
      module, "OomCallback", nb::type_slots(oom_callback_slots), nb::is_weak_referenceable(),
      "An out-of-memory callback: OomCallback(function).\n\n"
      "Until it is closed or dropped, `function(request)`, with an OomRequest, is called before a\n"
      "request of any pool waits for memory or raises USMAllocationError, and before a request to\n"
      "the driver without a pool raises it. It is called on the requesting thread, by several\n"
      "threads at once if several request memory, after the callbacks that were created before,\n"
      "and after Python's garbage collection. It may allocate (from the driver unless a resource\n"
      "is named) and free, and is not called from within another such function. It must not take\n"
      "a lock that a thread may hold while it requests memory or closes the callback. It returns\n"
      "the approximate number of bytes that it freed, or None for 0. Its exceptions go to\n"
      "sys.unraisablehook.\n\n"
      "May be used as a context manager: `with OomCallback(cache.drop):`.");
  bind_scope<OomCallback>(bound, &enter_nothing, &close_oom_callback);
  bound
      .def("__init__", &init_oom_callback, nb::arg("function").none(),
           nb::sig("def __init__(self, function: Callable[[OomRequest], int | None]) -> None"))
      .def("close", &close_oom_callback,
           "Stops the calls: waits until calls in progress have returned, unless close() is\n"
           "called from within such a function. Ctrl-C ends the wait; a call may then still run.\n"
           "Closing twice does nothing. Dropping an OomCallback does not wait.")
      .def_prop_ro(
          "closed", [](const OomCallback& self) { return self.raw == nullptr; },
          "Whether it was closed.")
      .def("__repr__", &oom_callback_repr, nb::sig("def __repr__(self) -> str"));
}

}  // namespace isthmus::python
