// SPDX-License-Identifier: Apache-2.0
// Snapshots, out-of-memory stages, and the out-of-memory callbacks of Python: functions of the
// program, and before them Python's garbage collection.

#include "pressure.hpp"

#include <array>
#include <chrono>
#include <set>

#include "arguments.hpp"
#include "buffer.hpp"
#include "callbacks.hpp"
#include "interruptible.hpp"
#include "scopes.hpp"

namespace isthmus::python {

thread_local constinit bool lock_is_released = false;

namespace {

nb::object named_tuple(const char* name) {
  return nb::module_::import_("isthmus._pressure").attr(name);
}

nb::object text_or_none(const char* text) {
  return text != nullptr ? nb::object{nb::str(text)} : nb::none();
}

nb::object names_of_rungs(std::uint32_t tried) {
  nb::list names;
  for (isthmus_rung_t each = 0; const char* name = isthmus_rung_name(each); ++each) {
    if ((tried >> each & 1U) != 0) {
      names.append(name);
    }
  }
  return nb::tuple(names);
}

nb::object to_snapshot(const isthmus_snapshot_t& raw) {
  const nb::object holder = named_tuple("TagHolder");
  nb::list holders;
  for (std::size_t each = 0; each < raw.holder_count; ++each) {
    const auto& of = raw.holders[each];
    holders.append(holder(tag_name(of.tag), of.bytes, of.count));
  }
  return named_tuple("Snapshot")(
      raw.held_bytes, raw.live_bytes, raw.cached_bytes, raw.waiting_bytes, raw.free_bytes,
      raw.largest_free_bytes, nb::tuple(holders), text_or_none(raw.device),
      raw.device != nullptr ? nb::borrow(kind_name(raw.kind)) : nb::none(), raw.requested_bytes,
      names_of_rungs(raw.rungs), text_or_none(raw.advice));
}

// Destroyed with the interpreter's lock held, through the deferred list. Guarded by that lock.
struct ReclaimFunction final : Deferred {
  explicit ReclaimFunction(nb::handle asked) : function{nb::borrow(asked)} {}
  nb::object function;  // not valid once it must not be called any more
};

struct Reclaimer;
// The callbacks that are not closed. Guarded by the interpreter's lock.
std::set<Reclaimer*> open_reclaimers;

struct Reclaimer {
  isthmus_reclaimer_t* raw = nullptr;  // null: closed
  ReclaimFunction* asked = nullptr;    // lives until then

  Reclaimer(isthmus_reclaimer_t* added, ReclaimFunction* function) : raw{added}, asked{function} {
    open_reclaimers.insert(this);
  }
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;
  // May run in a garbage collection, on any thread, and while the interpreter ends, so it waits for
  // nothing.
  ~Reclaimer() { drop(); }

  [[nodiscard]] isthmus_reclaimer_t* take() noexcept {
    open_reclaimers.erase(this);
    return std::exchange(raw, nullptr);
  }
  void drop() noexcept {
    if (raw != nullptr) {
      const nb::object last = std::move(asked->function);  // may run any code
      isthmus_reclaimer_remove(take(), 0);
    }
  }
};

std::uint64_t ask(nb::handle function, const isthmus_reclaim_request_t& request) {
  const nb::object told = function(named_tuple("ReclaimRequest")(
      wrap(DeviceHandle::retained(request.device)), kind_name(request.kind), request.nbytes));
  return told.is_none() ? 0 : to_size(told, "the result of a reclaim function");
}

std::uint64_t call_function(void* object, const isthmus_reclaim_request_t* request) {
  auto& of = *static_cast<ReclaimFunction*>(static_cast<Deferred*>(object));
  const CallbackLock lock;
  if (!lock || !of.function.is_valid()) {
    return 0;
  }
  const nb::object function = of.function;
  std::uint64_t bytes = 0;
  call_back_unraisable(function, [&] { bytes = ask(function, *request); });
  return bytes;
}

void init_reclaimer(Reclaimer* self, nb::handle function) {
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_python(PyExc_TypeError, "function must be callable, not %.100s",
                 Py_TYPE(function.ptr())->tp_name);
  }
  auto* const asked = new ReclaimFunction{function};
  isthmus_reclaimer_t* added = nullptr;
  check(isthmus_reclaimer_add(&call_function, defer_owner(asked), &added));
  new (self) Reclaimer{added, asked};
}

void close_reclaimer(Reclaimer& self) {
  if (auto* const raw = self.take(); raw != nullptr) {
    const Interruptible call;
    {
      const GilRelease released;
      isthmus_reclaimer_remove(raw, 1);
    }
    call.check(ISTHMUS_OK);
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    const auto& of = *nb::inst_ptr<Reclaimer>(self);
    Py_VISIT(of.raw != nullptr ? of.asked->function.ptr() : nullptr);
  }
  return 0;
}

int clear(PyObject* self) noexcept {
  if (nb::inst_ready(self)) {
    nb::inst_ptr<Reclaimer>(self)->drop();
  }
  return 0;
}

PyType_Slot reclaimer_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                 {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                 {0, nullptr}};

nb::object reclaimer_repr(const Reclaimer& self) {
  if (self.raw == nullptr) {
    return nb::str("<isthmus.memory.Reclaimer, closed>");
  }
  return nb::steal(
      PyUnicode_FromFormat("<isthmus.memory.Reclaimer of %R>", self.asked->function.ptr()));
}

// Python's garbage collection as an out-of-memory callback. It runs destructors, so it is called
// only if a thread waits in one of our functions without the lock, as other threads may run Python
// code there. It does not re-enter a running collection, on this thread or another (CPython's
// gcmodule), and does nothing if the program called gc.disable(). After a collection that freed no
// buffer there is no other one for four times as long as it took: a program that allocates until
// nothing is left spends at most a fifth of its time on it. Only memory freed on the device that
// needs it counts: a request to the driver of another device would be in vain.
std::uint64_t collect_garbage(void*, const isthmus_reclaim_request_t* request) {
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

void close_reclaimers() noexcept {
  while (!open_reclaimers.empty()) {
    (*open_reclaimers.begin())->drop();
  }
}

nb::object snapshot_of_pool(const PoolResource& resource) {
  isthmus_snapshot_t raw{};
  raw.struct_size = sizeof raw;
  isthmus_status_t status;
  {
    const GilRelease released;
    status = isthmus_resource_snapshot(resource.raw.get(), &raw);
  }
  check(status);
  return to_snapshot(raw);
}

nb::object snapshot_of_error() {
  isthmus_snapshot_t raw{};
  raw.struct_size = sizeof raw;
  return isthmus_error_snapshot(&raw) == ISTHMUS_OK ? to_snapshot(raw) : nb::none();
}

nb::object rungs_of_pool(const PoolResource& resource) {
  const nb::object counts = named_tuple("RungCounts");
  nb::dict all;
  isthmus_rung_t each = 0;
  while (const char* name = isthmus_rung_name(each)) {
    std::uint64_t tried = 0, served = 0;
    check(isthmus_resource_rung(resource.raw.get(), each++, &tried, &served));
    all[name] = counts(tried, served);
  }
  return all;
}

void bind_pressure(nb::module_& module) {
  isthmus_reclaimer_t* garbage = nullptr;  // never released
  check(isthmus_reclaimer_add(&collect_garbage, isthmus_owner_t{}, &garbage));
  nb::class_<Reclaimer>(
      module, "Reclaimer", nb::type_slots(reclaimer_slots), nb::is_weak_referenceable(),
      "An out-of-memory callback: Reclaimer(function).\n\n"
      "Until it is closed or dropped, `function(request)`, with a ReclaimRequest, is called\n"
      "before a request of any pool waits for memory or raises USMAllocationError, and before a\n"
      "request that goes to the driver without a pool raises it. It is called on the requesting\n"
      "thread, by several threads at once if several request memory, after the callbacks that\n"
      "were created before, and after Python's garbage collection. It may allocate (from the\n"
      "driver unless a resource is named) and free, and is not called from within another such\n"
      "function. It must not take a lock that a thread may hold while it requests memory or\n"
      "closes the callback. It returns about how many bytes it freed, None for 0. What it\n"
      "raises goes to sys.unraisablehook.\n\n"
      "A context manager: `with Reclaimer(cache.drop):`.")
      .def("__init__", &init_reclaimer, nb::arg("function").none(),
           nb::sig("def __init__(self, function: Callable[[ReclaimRequest], int | None]) -> None"))
      .def("close", &close_reclaimer, nb::sig("def close(self) -> None"),
           "Stops the calls: waits until calls in progress have ended, unless this is called\n"
           "from within such a function. Ctrl-C ends the wait; a call may then still run. Does\n"
           "nothing if it is closed. Dropping a Reclaimer waits for nothing.")
      .def_prop_ro(
          "closed", [](const Reclaimer& self) { return self.raw == nullptr; },
          nb::sig("def closed(self) -> bool"), "Whether it was closed.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> Self"))
      .def(
          "__exit__", [](Reclaimer& self, const nb::args&) { close_reclaimer(self); },
          nb::sig("def __exit__(self, *exc: object) -> None"))
      .def("__repr__", &reclaimer_repr, nb::sig("def __repr__(self) -> str"));
}

}  // namespace isthmus::python
