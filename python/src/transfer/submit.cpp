// SPDX-License-Identifier: Apache-2.0
// Runs Python functions on library threads.

#include "transfer/submit.hpp"

#include <csignal>
#include <string>
#include <vector>

#include "core/gil.hpp"
#include "core/interrupts.hpp"
#include "core/owners.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

// Changed and read with the interpreter's lock held, so relaxed order suffices.
std::atomic<int> functions_pending{0};

// Exports a buffer's memory to a submitted function. Views that outlive the function are counted,
// and keep the Buffer alive.
struct CallbackMemory {
  void* pointer;
  std::size_t nbytes;
  nb::object buffer_object;
  int exports = 0;
};
nb::handle callback_memory_type;

int get_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  auto* memory = nb::inst_ptr<CallbackMemory>(self);
  static char placeholder[1];
  void* pointer = memory->pointer != nullptr ? memory->pointer : placeholder;
  const bool read_only = buffer_of(memory->buffer_object)->read_only;
  const int failed = PyBuffer_FillInfo(view, self, pointer, static_cast<Py_ssize_t>(memory->nbytes),
                                       read_only ? 1 : 0, flags);
  memory->exports += failed == 0 ? 1 : 0;
  return failed;
}
void release_view(PyObject* self, Py_buffer*) noexcept {
  --nb::inst_ptr<CallbackMemory>(self)->exports;
}

PyType_Slot callback_memory_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_view)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_view)},
    {0, nullptr}};

// A submitted function. Destroyed with the interpreter's lock held, through the deferred list.
struct FunctionCall final : Deferred {
  nb::object function;
  std::vector<nb::object> buffers;
  nb::object event_object;
  nb::object context;   // contextvars of the caller of submit
  std::string message;  // of its exception, for the library

  ~FunctionCall() override { functions_pending.fetch_sub(1, std::memory_order_relaxed); }
};

struct CallbackViews {
  std::vector<nb::object> memory;
  std::vector<nb::object> views;
};

CallbackViews make_views(const FunctionCall& call, const isthmus_view_t* views, std::size_t count) {
  CallbackViews memory_views;
  for (std::size_t i = 0; i < count; ++i) {
    memory_views.memory.push_back(make_instance<CallbackMemory>(callback_memory_type, views[i].data,
                                                                views[i].nbytes, call.buffers[i]));
    memory_views.views.push_back(
        nb::steal(PyMemoryView_FromObject(memory_views.memory.back().ptr())));
    if (!memory_views.views.back().is_valid()) {
      throw nb::python_error();
    }
  }
  return memory_views;
}

// Releases the views. BufferError if an object created from them, such as an array, still exists.
void release_views(CallbackViews& memory_views) {
  for (auto& view : memory_views.views) {
    const nb::object released = nb::steal(PyObject_CallMethod(view.ptr(), "release", nullptr));
    if (!released.is_valid()) {
      PyErr_Clear();
    }
  }
  memory_views.views.clear();
  for (const auto& memory : memory_views.memory) {
    if (nb::inst_ptr<CallbackMemory>(memory)->exports != 0) {
      raise_python(
          PyExc_BufferError,
          "a function submitted to a queue retained a view of a buffer, which is valid only "
          "during the call: copy the data to retain, and release arrays created from the views");
    }
  }
}

void call_with_views(const FunctionCall& call, const isthmus_view_t* views, std::size_t count) {
  auto memory_views = make_views(call, views, count);
  std::vector<PyObject*> arguments;
  for (const auto& view : memory_views.views) {
    arguments.push_back(view.ptr());
  }
  nb::object result = nb::steal(
      PyObject_Vectorcall(call.function.ptr(), arguments.data(), arguments.size(), nullptr));
  if (!result.is_valid()) {
    nb::python_error failed;
    try {
      release_views(memory_views);
    } catch (nb::python_error&) {
      // the function's exception is more specific, and its traceback refers to the arrays
    }
    throw failed;
  }
  result.reset();  // the result must not keep views alive
  release_views(memory_views);
}

// While the object exists, this thread runs a submitted function in the context of its caller.
class EnteredFunction {
 public:
  explicit EnteredFunction(nb::handle context) noexcept : context_{context} {
    PyContext_Enter(context_.ptr());
    is_in_function = true;
  }
  EnteredFunction(const EnteredFunction&) = delete;
  EnteredFunction& operator=(const EnteredFunction&) = delete;
  ~EnteredFunction() {
    is_in_function = false;
    PyContext_Exit(context_.ptr());
  }

 private:
  const nb::handle context_;
};

isthmus_status_t report_no_memory(FunctionCall& call) noexcept {
  call.message = "MemoryError";  // short enough to need no memory
  return ISTHMUS_ERROR_OUT_OF_MEMORY;
}

isthmus_status_t store_exception(FunctionCall& call, nb::python_error& failed) noexcept try {
  nb::object raised = take_exception(failed, call.message);
  auto* event = event_of(call.event_object);
  event->exception = raised.release().ptr();
  event->function = call.function.inc_ref().ptr();
  return ISTHMUS_ERROR_CALLBACK;
} catch (const std::bad_alloc&) {
  return report_no_memory(call);
}

isthmus_status_t call_function(FunctionCall& call, const isthmus_view_t* views, std::size_t count) {
  const EnteredFunction entered{call.context};
  try {
    call_with_views(call, views, count);
    return ISTHMUS_OK;
  } catch (nb::python_error& failed) {
    return store_exception(call, failed);
  } catch (const std::bad_alloc&) {
    return report_no_memory(call);
  }
}

isthmus_status_t run_with_lock(FunctionCall& call, const isthmus_view_t* views, std::size_t count) {
  const auto status = call_function(call, views, count);
  drain_deferred();
  return status;
}

isthmus_status_t run_function(void* object, const isthmus_view_t* views, std::size_t count,
                              const char** message) {
  auto& call = *static_cast<FunctionCall*>(object);
  const CallbackLock lock;
  if (!lock) {
    *message = "the function did not run: the interpreter is shutting down";
    return ISTHMUS_ERROR_CLOSED;
  }
  const auto status = run_with_lock(call, views, count);
  *message = call.message.c_str();
  return status;
}

std::vector<isthmus_buffer_t*> read_buffers(FunctionCall& call, nb::args buffers) {
  std::vector<isthmus_buffer_t*> raw;
  for (nb::handle each : buffers) {
    const auto* buffer = buffer_of(each);
    if (buffer == nullptr) {
      raise_wrong_type(each, "submit() takes a function and Buffers");
    }
    raw.push_back(buffer->raw.get());
    call.buffers.push_back(nb::borrow(each));
  }
  return raw;
}

}  // namespace

bool has_pending_functions() noexcept {
  return functions_pending.load(std::memory_order_relaxed) != 0;
}

nb::object submit_function(const Queue& queue, nb::handle function, nb::args buffers,
                           nb::handle after) {
  drain_deferred();
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_wrong_type(function, "submit() needs a function");
  }
  functions_pending.fetch_add(1, std::memory_order_relaxed);
  auto call = std::make_unique<FunctionCall>();
  call->function = nb::borrow(function);
  const auto raw = read_buffers(*call, buffers);
  const OperationArguments arguments{nb::handle{}, after, false};
  call->event_object = wrap(EventHandle{});
  call->context = nb::steal(PyContext_CopyCurrent());
  const nb::object event_object = call->event_object;
  EventHandle submitted;
  const auto owner = defer_owner(call.release());
  check(without_lock([&] {
    return isthmus_queue_submit(queue.raw.get(), &run_function, owner, raw.data(), raw.size(),
                                arguments.after.data(), arguments.after.size(), submitted.out());
  }));
  event_of(event_object)->raw = std::move(submitted);
  return event_object;
}

void stop_callbacks() {
  callbacks_gate.close();
  while (!callbacks_gate.empty()) {
    {
      const GilRelease released;
      usleep(1000);
    }
    if (PyErr_CheckSignals() != 0) {
      PyErr_WriteUnraisable(Py_None);
      std::signal(SIGINT, SIG_DFL);
      std::raise(SIGINT);
    }
  }
}

void bind_submit(nb::module_& module) {
  callback_memory_type =
      nb::class_<CallbackMemory>(module, "_CallbackMemory", nb::type_slots(callback_memory_slots),
                                 "The memory of a buffer, for a function submitted to a queue.");
}

}  // namespace isthmus::python
