// SPDX-License-Identifier: Apache-2.0
#include "core/arguments.hpp"
#include "core/bindings.hpp"
#include "core/errors.hpp"
#include "core/objects.hpp"
#include "core/owners.hpp"
#include "core/sycl_objects.hpp"
#include "core/waiting.hpp"

namespace isthmus::python {
namespace {

// Passes an exception that the program has not received to sys.unraisablehook, as asyncio reports
// those of dropped tasks. An exception that is set remains set.
void report_dropped_exception(const Event& event) noexcept {
  if (event.exception == nullptr) {
    return;
  }
  isthmus_event_mark_reported(event.raw.get());  // here or by the program: the library need not
  if (std::exchange(event.is_retrieved, true)) {
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* const raised = event.exception;
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(raised))), Py_NewRef(raised),
                PyException_GetTraceback(raised));
#if PY_VERSION_HEX >= 0x030D0000
  PyErr_FormatUnraisable("Exception ignored in a function on a queue, whose event was dropped: %R",
                         event.function);
#else
  _PyErr_WriteUnraisableMsg("in a function on a queue, whose event was dropped", event.function);
#endif
  PyErr_Restore(type, value, trace);
}

void init_event(Event* self) { new (self) Event{make_handle<EventHandle>(isthmus_event_create)}; }

// The exception of a failed operation: the one that its function raised, else one created from the
// status.
nb::object failure_of(const Event& event, isthmus_status_t status) {
  if (status == ISTHMUS_ERROR_CALLBACK && event.exception != nullptr) {
    event.is_retrieved = true;
    return nb::borrow(event.exception);
  }
  isthmus_event_wait(event.raw.get(), 0);  // sets this thread's message
  return error_object(status);
}

void raise_failure(const Event& event, isthmus_status_t status) {
  const nb::object failure = failure_of(event, status);
  if (failure.is_valid()) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(failure.ptr())), failure.ptr());
  }
  raise_set();
}

void wait(const Event& self, nb::handle timeout) {
  const auto timeout_ns = to_timeout(timeout);
  drain_deferred();
  const bool was_pending = isthmus_event_status(self.raw.get()) == ISTHMUS_PENDING;
  const auto status = wait_for_event(self.raw.get(), timeout_ns);
  drain_deferred();
  if (status == ISTHMUS_ERROR_TIMEOUT && was_pending) {
    check(status);
  }
  check_has_waited(self.raw.get(), status);
  if (status != ISTHMUS_OK) {
    raise_failure(self, status);
  }
}

// Waits for all events before it raises the first failure.
void wait_for(nb::handle events) {
  const Event* failed = nullptr;
  isthmus_status_t failure = ISTHMUS_OK;
  const nb::object sequence = steal_or_raise(PySequence_Tuple(events.ptr()));
  for (nb::handle each : sequence) {
    if (event_of(each) == nullptr) {
      raise_python(PyExc_TypeError, "wait_for() takes a sequence of Events, not one with %.100s",
                   Py_TYPE(each.ptr())->tp_name);
    }
  }
  for (nb::handle each : sequence) {
    const auto* waited = event_of(each);
    const auto status = wait_for_event(waited->raw.get(), -1);
    check_has_waited(waited->raw.get(), status);
    waited->is_retrieved = true;  // the caller learns that operations failed, by the first error
    if (status != ISTHMUS_OK && failed == nullptr) {
      failed = waited;
      failure = status;
    }
  }
  drain_deferred();
  if (failed != nullptr) {
    raise_failure(*failed, failure);
  }
}

bool is_done(const Event& self) { return isthmus_event_status(self.raw.get()) != ISTHMUS_PENDING; }

const char* status_of(const Event& self) {
  const auto status = isthmus_event_status(self.raw.get());
  return status == ISTHMUS_PENDING ? "pending" : status == ISTHMUS_OK ? "complete" : "failed";
}

nb::object error_of(const Event& self) {
  const auto status = isthmus_event_status(self.raw.get());
  if (status == ISTHMUS_PENDING || status == ISTHMUS_OK) {
    return nb::none();
  }
  const nb::object failure = failure_of(self, status);
  if (!failure.is_valid()) {
    raise_set();
  }
  return failure;
}

// The library may call functions of the program that wait for a Python function.
void complete_with(const Event& self, isthmus_status_t status, const char* message) {
  check(without_lock([&] { return isthmus_event_complete(self.raw.get(), status, message); }));
}

void complete(const Event& self) { complete_with(self, ISTHMUS_OK, nullptr); }

void fail(Event& self, nb::handle message) {
  if (PyUnicode_Check(message.ptr()) == 0) {
    raise_python(PyExc_TypeError, "message must be a str, not %R", message.ptr());
  }
  complete_with(self, ISTHMUS_ERROR_CALLBACK, utf8_of(message));
}

nb::object times_of(const Event& self) {
  auto info = sized<isthmus_event_times_info_t>();
  const auto status = isthmus_event_times_info(self.raw.get(), &info);
  if (status == ISTHMUS_ERROR_UNSUPPORTED || status == ISTHMUS_PENDING) {
    return nb::none();
  }
  check(status);
  return nb::make_tuple(info.submitted_ns, info.started_ns, info.ended_ns);
}

nb::object elapsed_since(nb::handle self, nb::handle earlier) {
  const auto* begin = event_of(earlier);
  if (begin == nullptr) {
    raise_wrong_type(earlier, "earlier must be an Event");
  }
  const auto& end = *event_of(self);
  for (const auto* each : {begin, &end}) {
    const auto status = wait_for_event(each->raw.get(), -1);
    check_has_waited(each->raw.get(), status);
    check(status == ISTHMUS_OK ? status : isthmus_event_wait(each->raw.get(), 0));
  }
  std::int64_t elapsed = 0;
  check(isthmus_event_elapsed(end.raw.get(), begin->raw.get(), &elapsed));
  return nb::int_(elapsed);
}

void notify(const Event& self, int descriptor) {
  check(isthmus_event_notify(self.raw.get(), descriptor));
}

nb::object await_event(nb::handle self) {
  static PyObject* waiter = nullptr;
  if (waiter == nullptr) {
    waiter = nb::object(nb::module_::import_("isthmus._asyncio").attr("wait_for")).release().ptr();
  }
  return nb::handle(waiter)(self).attr("__await__")();
}

nb::object event_repr(const Event& self) {
  return nb::steal(PyUnicode_FromFormat("<isthmus.Event %p, %s>",
                                        static_cast<void*>(self.raw.get()), status_of(self)));
}

// The traceback of a raised exception may refer to the event that holds it.
int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    Py_VISIT(nb::inst_ptr<Event>(self)->exception);
    Py_VISIT(nb::inst_ptr<Event>(self)->function);
  }
  return 0;
}

int clear(PyObject* self) noexcept {
  if (nb::inst_ready(self)) {
    Py_CLEAR(nb::inst_ptr<Event>(self)->exception);
    Py_CLEAR(nb::inst_ptr<Event>(self)->function);
  }
  return 0;
}

// Called by the garbage collector, before `clear`.
void finalize(PyObject* self) noexcept {
  if (nb::inst_ready(self)) {
    report_dropped_exception(*nb::inst_ptr<Event>(self));
  }
}

PyType_Slot event_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                             {Py_tp_finalize, reinterpret_cast<void*>(&finalize)},
                             {0, nullptr}};

void bind_host_side(nb::class_<Event>& bound) {
  bound
      .def("complete", &complete,
           "Completes a host event. Raises ValueError for an operation's event or a completed one.")
      .def("fail", &fail, nb::arg("message").none(),
           nb::sig("def fail(self, message: str) -> None"),
           "Completes a host event with a CallbackError. Operations that wait for it on a queue\n"
           "do not run and fail with DependencyError. Raises ValueError as complete() does.")
      .def("_notify", &notify, nb::arg("descriptor"),
           "Writes 8 bytes to a copy of a file descriptor on completion.")
      .def("__await__", &await_event, nb::sig("def __await__(self) -> Generator[Any, None, None]"),
           "`await event` in asyncio: like wait(), without blocking the loop or a thread. Any\n"
           "number of tasks may await the same event; cancelling one does not affect the\n"
           "operation.");
}

}  // namespace

Event::~Event() {
  report_dropped_exception(*this);
  Py_XDECREF(exception);
  Py_XDECREF(function);
}

void bind_event(nb::module_& module) {
  nb::class_<Event> bound(
      module, "Event", nb::type_slots(event_slots), nb::is_weak_referenceable(),
      "The completion of an operation. Event() creates a host event, which the program itself\n"
      "completes. If a host event is dropped before that, it fails with AbandonedError, so that\n"
      "no queue waits indefinitely. Safe to use from any thread.");
  types.event = bound;
  bind_from_sycl(bound, &find_sycl_event, "Event", "def from_sycl(obj: Any) -> Event");
  bind_capsule<Event>(bound);
  bound.def("__init__", &init_event, nb::sig("def __init__(self) -> None"))
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> None"),
           "Waits until the operation has completed, for at most `timeout` seconds (None:\n"
           "indefinitely; 0 polls), and raises its error if it failed. Releases the interpreter's\n"
           "lock; Ctrl-C interrupts the wait, not the operation. Raises WaitTimeoutError.")
      .def_static(
          "wait_for", &wait_for, nb::arg("events").none(),
          nb::sig("def wait_for(events: Sequence[Event]) -> None"),
          "Waits for all events, then raises the first failure, in the order of the sequence.")
      .def_prop_ro("done", &is_done,
                   "Whether the operation has completed, successfully or not. Does not block.")
      .def_prop_ro("status", &status_of, nb::sig("def status(self) -> str"),
                   "\"pending\", \"complete\" or \"failed\".")
      .def_prop_ro("error", &error_of, nb::sig("def error(self) -> BaseException | None"),
                   "The exception that wait() would raise, None if there is none (yet).")
      .def_prop_ro("times", &times_of, nb::sig("def times(self) -> tuple[int, int, int] | None"),
                   "(submitted, started, ended) in nanoseconds of the device's clock; None before\n"
                   "completion and where the driver does not record them.")
      .def("elapsed_since", &elapsed_since, nb::arg("earlier").none(),
           nb::sig("def elapsed_since(self, earlier: Event) -> int"),
           "Nanoseconds from the end of `earlier` to the end of this event, on their device's\n"
           "clock; negative if this event completed first. Both must be events of\n"
           "Queue.mark(), on queues of one device. Waits for both, and raises their errors.\n"
           "Raises UnsupportedError for events without times, InvalidArgumentError for those of\n"
           "two devices.")
      .def_prop_ro(
          "native_handle",
          [](const Event& self) { return reinterpret_cast<std::uintptr_t>(info_of(self).native); },
          "The driver's handle as an integer (OpenCL: cl_event), 0 if the driver has none. Valid\n"
          "while this object exists.")
      .def("__repr__", &event_repr, nb::sig("def __repr__(self) -> str"));
  bind_host_side(bound);
}

}  // namespace isthmus::python
