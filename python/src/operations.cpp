// Starting an operation and waiting for it.

#include <array>
#include <memory>

#include "transfers.hpp"
#include "waiting.hpp"

namespace isthmus::python {
namespace {

// Longer ones let other threads run meanwhile; for shorter ones that would cost more than the copy.
constexpr std::size_t k_keep_lock_bytes = 16 * 1024;

bool may_keep_lock(const operation& what) {
  return what.nbytes <= k_keep_lock_bytes && what.direct && what.arguments.after.empty() &&
         !functions_under_way();
}

// A wait that Ctrl-C can interrupt costs a driver's callback and a sleep. What is small, and has nothing
// before it, ends soon enough by itself.
constexpr std::size_t k_short_bytes = 4 * 1024 * 1024;

bool ends_soon(const operation& what) {
  if (what.nbytes > k_short_bytes || !what.arguments.after.empty() || functions_under_way()) {
    return false;
  }
  auto* queue = what.arguments.queue;
  for (const auto* each : what.places) {
    if (queue == nullptr && each != nullptr && each->raw.buffer != nullptr) {
      isthmus_buffer_info_t info{};
      info.struct_size = sizeof info;
      queue = isthmus_buffer_info(each->raw.buffer, &info) == ISTHMUS_OK ? info.queue : nullptr;
    }
  }
  return isthmus_queue_idle(queue) == 1;
}

// A view that both this call and the operation hold: dropped by the last.
struct shared_pin final : deferred {
  explicit shared_pin(std::shared_ptr<pinned> held) : memory{std::move(held)} {}
  std::shared_ptr<pinned> memory;
};

// The wait was interrupted, the operation goes on: it keeps the memory from here on. Should that fail
// there is nothing left but to see it end.
void leave_memory_to(isthmus_event_t* event, operation& what) {
  for (auto* each : what.places) {
    if (each == nullptr || each->memory == nullptr) {
      continue;
    }
    const std::shared_ptr<pinned> held{std::move(each->memory)};
    const auto owner = defer_owner(new shared_pin{held});
    if (isthmus_event_then(event, owner) != ISTHMUS_OK) {
      const gil_release released;
      isthmus_event_wait(event, -1);
    }
  }
}

void finish_blocking(isthmus_event_t* event, operation& what, bool soon) {
  isthmus_status_t status;
  if (soon) {
    const gil_release released;
    status = isthmus_event_wait(event, -1);
  } else {
    status = isthmus_event_status(event);
  }
  if (status == ISTHMUS_OK) {
    return;
  }
  try {
    if (status == ISTHMUS_PENDING) {
      status = wait_for_event(event, -1);
    }
  } catch (...) {
    leave_memory_to(event, what);
    throw;
  }
  // The wait sets this thread's message.
  check(status == ISTHMUS_OK ? status : isthmus_event_wait(event, 0));
}

isthmus_event_t* add_event(operation_arguments& to, nb::handle object) {
  auto* added = event_of(object);
  if (added == nullptr || !added->raw) {
    raise_python(PyExc_TypeError, "after must be an Event or a sequence of them, not one with %.100s",
                 Py_TYPE(object.ptr())->tp_name);
  }
  to.kept.push_back(nb::borrow(object));
  return added->raw.get();
}

}  // namespace

operation_arguments::operation_arguments(nb::handle on_queue, nb::handle events, bool blocks)
    : blocking{blocks} {
  if (on_queue.is_valid() && !on_queue.is_none()) {
    const auto* on = queue_of(on_queue);
    if (on == nullptr) {
      raise_python(PyExc_TypeError, "queue must be a Queue or None, not %.100s",
                   Py_TYPE(on_queue.ptr())->tp_name);
    }
    queue = on->raw.get();
  }
  if (!events.is_valid() || events.is_none() ||
      (PyTuple_CheckExact(events.ptr()) && PyTuple_GET_SIZE(events.ptr()) == 0)) {
    return;
  }
  if (event_of(events) != nullptr) {
    after.push_back(add_event(*this, events));
    return;
  }
  for (nb::handle each : events) {
    after.push_back(add_event(*this, each));
  }
}

nb::object run_operation(operation& what, submission submit, void* closure) {
  drain_deferred();
  const auto& arguments = what.arguments;
  std::array<isthmus_owner_t, 2> owners;
  isthmus_operation_t with{sizeof with, arguments.after.data(), arguments.after.size(),
                           owners.data(), 0};
  for (auto* each : what.places) {
    if (!arguments.blocking && each != nullptr && each->memory != nullptr) {
      owners[with.owner_count++] = defer_owner(each->memory.release());
    }
  }
  const bool soon = arguments.blocking && !may_keep_lock(what) && ends_soon(what);
  event_handle submitted;
  isthmus_status_t status;
  {
    const gil_release released{!may_keep_lock(what)};
    status = submit(closure, &with, submitted.out());
  }
  check(status);
  if (!arguments.blocking) {
    return wrap(std::move(submitted));
  }
  finish_blocking(submitted.get(), what, soon);
  return nb::none();
}

}  // namespace isthmus::python
