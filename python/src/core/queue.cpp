// SPDX-License-Identifier: Apache-2.0
#include "core/arguments.hpp"
#include "core/bindings.hpp"
#include "core/cuda_streams.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/owners.hpp"
#include "core/sycl_objects.hpp"
#include "core/waiting.hpp"

namespace isthmus::python {
namespace {

void init_queue(Queue* self, nb::handle queue, nb::handle context_argument) {
  nb::object context_object =
      context_argument.is_none() ? nb::object{} : nb::borrow(context_argument);
  nb::object device_object;
  if (context_of(queue) != nullptr) {
    if (context_object.is_valid()) {
      raise_python(PyExc_TypeError, "Queue() got the context twice");
    }
    context_object = nb::borrow(queue);
  } else if (!queue.is_none() || !context_object.is_valid()) {
    device_object = to_device(queue);
  }
  if (context_object.is_valid() && context_of(context_object) == nullptr) {
    if (nb::object adopted = find_sycl_context(context_object); adopted.is_valid()) {
      context_object = std::move(adopted);
    }
  }
  const auto* parent = context_object.is_valid() ? context_or_none(context_object) : nullptr;
  if (!device_object.is_valid()) {
    device_object = first_device_of(*parent);
  }
  new (self) Queue{make_handle<QueueHandle>(isthmus_queue_create,
                                            parent != nullptr ? parent->raw.get() : nullptr,
                                            device_of(device_object)->raw.get())};
}

nb::object from_handle(nb::handle handle, nb::handle queue, nb::handle owner) {
  void* native = to_pointer(handle, "handle");
  const nb::object device_object = to_device(queue);
  return wrap(make_handle<QueueHandle>(isthmus_queue_adopt, device_of(device_object)->raw.get(),
                                       native, keep_alive(owner)));
}

nb::object from_stream(nb::handle stream, nb::handle device) {
  return wrap(queue_of_stream(stream, device));
}

void wait(const Queue& self, nb::handle timeout) {
  const auto timeout_ns = to_timeout(timeout);
  drain_deferred();
  const auto status = wait_for_queue(self.raw.get(), timeout_ns);
  drain_deferred();
  check(status);
}

nb::object mark(const Queue& self) {
  EventHandle event;
  check(without_lock([&] { return isthmus_queue_mark(self.raw.get(), event.out()); },
                     !self.submits_at_once));
  return wrap(std::move(event));
}

nb::object backend_of(const Queue& self) {
  return nb::str(info_of(*device_of(self.device_object)).backend);
}

void bind_properties(nb::class_<Queue>& bound) {
  const auto device = [](const Queue& self) { return self.device_object; };
  const auto context = [](const Queue& self) { return self.context_object; };
  bound.def_prop_ro("device", device, nb::sig("def device(self) -> Device"), "Its device.")
      .def_prop_ro("context", context, nb::sig("def context(self) -> Context"), "Its context.")
      .def_prop_ro("sycl_device", device, nb::sig("def sycl_device(self) -> Device"),
                   "dpctl's name for `device`.")
      .def_prop_ro("sycl_context", context, nb::sig("def sycl_context(self) -> Context"),
                   "dpctl's name for `context`.")
      .def_prop_ro("backend", &backend_of, nb::sig("def backend(self) -> str"),
                   "\"host\", \"sim\", \"cuda\", \"opencl\" or \"sycl\".")
      .def_prop_ro(
          "is_in_order", [](const Queue&) { return true; }, "Always True.")
      .def_prop_ro(
          "idle", [](const Queue& self) { return isthmus_queue_idle(self.raw.get()) != 0; },
          "Whether no operation that Isthmus submitted is pending.")
      .def_prop_ro(
          "native_handle",
          [](const Queue& self) { return reinterpret_cast<std::uintptr_t>(export_handle(self)); },
          "The driver's handle as an integer (OpenCL: cl_command_queue; SYCL: dpctl's reference),\n"
          "0 if the driver has none. Valid while this object exists. After it was read, Isthmus\n"
          "assumes that the queue may have external work.")
      .def("__cuda_stream__", &cuda_stream_of,
           nb::sig("def __cuda_stream__(self) -> tuple[int, int]"),
           "(0, handle), for libraries that accept CUDA streams; counts as reading\n"
           "`native_handle`. Raises TypeError for a queue of another backend.");
}

void bind_order(nb::class_<Queue>& bound) {
  bound
      .def("wait", &wait, nb::arg("timeout") = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> None"),
           "Waits for all work submitted so far, for at most `timeout` seconds (None:\n"
           "indefinitely). Errors of operations are reported by their own events. Releases the\n"
           "interpreter's lock; Ctrl-C interrupts. Raises WaitTimeoutError.")
      .def("mark", &mark, nb::sig("def mark(self) -> Event"),
           "An event that completes after all work submitted so far has completed, and records\n"
           "the time, for Event.elapsed_since.")
      .def(
          "close", [](const Queue& self) { check(isthmus_queue_close(self.raw.get())); },
          "Rejects further work with ClosedError; submitted work still runs. Never blocks. Raises\n"
          "ValueError for the default queue of a device, which cannot be closed.");
  bind_with(bound);
}

}  // namespace

nb::class_<Queue> bind_queue(nb::module_& module) {
  nb::class_<Queue> bound(
      module, "Queue", nb::is_weak_referenceable(),
      "A queue: Queue(device=None, *, context=None). Its operations run one after the other.\n\n"
      "`device`: a Device, a filter string, or a Context, which means its first device; None:\n"
      "the current device. `context` None: the device's default one. Every call creates a new\n"
      "queue; Device.default_queue is the shared one. Raises DeviceNotFoundError, and\n"
      "WrongContextError for a device that is not in the context.\n\n"
      "`with queue:` makes it, and its device, the current one of this thread and asyncio task;\n"
      "this nests. Queues are equal if they represent the same driver queue, and may be used\n"
      "from any thread.");
  types.queue = bound;
  bind_from_sycl(bound, &find_sycl_queue, "Queue", "def from_sycl(obj: Any) -> Queue");
  bind_capsule<Queue>(bound);
  bound
      .def("__init__", &init_queue, nb::arg("device") = nb::none(), nb::kw_only(),
           nb::arg("context") = nb::none(),
           nb::sig("def __init__(self, device: Device | str | Context | None = None, *, context: "
                   "Context "
                   "| None = None) -> None"))
      .def_static(
          "from_handle", &from_handle, nb::arg("handle").none(), nb::arg("device").none(),
          nb::arg("owner") = nb::none(),
          nb::sig("def from_handle(handle: int, device: Device | str, owner: object = None) -> "
                  "Queue"),
          "Adopts a driver's queue (OpenCL: cl_command_queue) of `device`'s platform. If it is\n"
          "out of order, every operation is enclosed by barriers. It is kept alive by `owner`\n"
          "if passed, else by the driver's own reference count. Raises UnsupportedError where\n"
          "queues have no handles.")
      .def_static(
          "from_stream", &from_stream, nb::arg("stream").none(), nb::arg("device") = nb::none(),
          nb::sig("def from_stream(stream: Any, device: Device | str | None = None) -> Queue"),
          "Adopts a CUDA stream of another library, which it keeps alive: an object with\n"
          "__cuda_stream__ (cuda.core, a Queue), a stream of PyTorch or CuPy. `device` None:\n"
          "the device of the stream; for a default stream that does not report one, the current\n"
          "device if it is a CUDA device, else \"cuda:0\". Operations are ordered with external\n"
          "work on the stream. Raises TypeError for other objects, WrongContextError for a stream\n"
          "of another device.\n\n"
          "The per-thread default stream is the calling thread's. Its queue may be used on any\n"
          "thread: from other threads its operations go to the legacy default stream, which has\n"
          "the same order. Adopting it again on its thread returns the same queue.");
  bind_key<Queue>(
      bound, [](const Queue& self) { return isthmus_queue_key(self.raw.get()); }, &queue_of);
  bind_repr(bound, "queue");
  bind_properties(bound);
  bind_order(bound);
  return bound;
}

void* export_handle(const Queue& queue) {
  void* handle = nullptr;
  // the call may retry for a second
  check(without_lock([&] { return isthmus_queue_export_native(queue.raw.get(), &handle); }));
  return handle;
}

}  // namespace isthmus::python
