// SPDX-License-Identifier: Apache-2.0
// Submits operations and waits for them.

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "core/current.hpp"
#include "core/interruptible.hpp"
#include "core/interrupts.hpp"
#include "core/sycl_objects.hpp"
#include "core/waiting.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

// Longer operations release the interpreter's lock; for shorter ones that would cost more than the
// copy.
constexpr std::size_t k_max_keep_lock_bytes = 16 * 1024;

bool may_keep_lock(const Operation& operation) {
  const auto submits_at_once = [](const Endpoint* each) {
    return each == nullptr || each->submits_at_once;
  };
  return operation.nbytes <= k_max_keep_lock_bytes && operation.direct &&
         operation.arguments.after.empty() &&
         std::all_of(std::begin(operation.endpoints), std::end(operation.endpoints),
                     submits_at_once) &&
         !has_pending_functions();
}

// A wait that Ctrl-C can interrupt costs a driver callback and a sleep. It also prevents drivers
// that compute on the host from using this thread too (Intel's: 15 GB/s instead of 9 on two cores).
// If only the operation itself is to be waited for, it is one blocking call of the library. Ctrl-C
// then takes effect afterwards, so the size is limited.
constexpr std::size_t k_max_synchronous_bytes = std::size_t{1} << 30;

// In a submitted function it always is: no signals are handled there, and the library must know
// that the call waits to report that it would wait for the function itself.
bool may_run_synchronously(const Operation& operation) {
  if (operation.arguments.blocking && is_in_function) {
    return true;
  }
  if (!operation.arguments.blocking || !operation.arguments.after.empty() ||
      operation.nbytes > k_max_synchronous_bytes || has_pending_functions()) {
    return false;
  }
  const auto is_idle = [](isthmus_queue_t* queue) {
    return queue == nullptr || isthmus_queue_idle(queue) != 0;
  };
  const auto is_quiet = [](isthmus_buffer_t* buffer) {
    return buffer == nullptr || isthmus_buffer_wait(buffer, 0) != ISTHMUS_ERROR_TIMEOUT;
  };
  for (const auto* each : operation.endpoints) {
    if (each != nullptr && !(is_idle(each->queue) && is_quiet(each->raw.buffer))) {
      return false;
    }
  }
  return is_idle(operation.arguments.queue);
}

// A view that both this call and the operation hold; released by the last of them.
struct SharedPin final : Deferred {
  SharedPin(std::shared_ptr<Pinned> held, nb::object object_owner)
      : memory{std::move(held)}, owner{std::move(object_owner)} {}
  std::shared_ptr<Pinned> memory;
  nb::object owner;
};

// Transfers the reference to the memory to the operation, which continues. Returns false if that is
// not possible.
bool defer_release_to(isthmus_event_t* event, Endpoint& endpoint) {
  if (endpoint.raw.buffer != nullptr) {
    return true;
  }
  if (endpoint.memory == nullptr && !endpoint.owner.is_valid()) {
    return false;
  }
  const std::shared_ptr<Pinned> held{std::move(endpoint.memory)};
  const auto owner = defer_owner(new SharedPin{held, endpoint.owner});
  return isthmus_event_then(event, owner) == ISTHMUS_OK;
}

// Releases the endpoints after an interrupted wait. Memory whose release cannot be deferred to the
// operation must outlive it, so this function then waits for its completion.
void release_after_event(isthmus_event_t* event, Operation& operation) {
  for (auto* each : operation.endpoints) {
    if (each != nullptr && !defer_release_to(event, *each)) {
      const GilRelease released;
      isthmus_event_wait(event, -1);
    }
  }
}

// The submission may need memory, for a copy that goes through staging.
template <class Call>
void submit_interruptibly(Call call, const EventHandle& submitted, Operation& operation) {
  const Interruptible interruptible;
  const auto status = without_lock(call);
  try {
    interruptible.check(status);
  } catch (...) {
    if (submitted) {
      release_after_event(submitted.get(), operation);
    }
    throw;
  }
}

void finish_blocking(isthmus_event_t* event, Operation& operation) {
  isthmus_status_t status = isthmus_event_status(event);
  if (status == ISTHMUS_OK) {
    return;
  }
  try {
    if (status == ISTHMUS_PENDING) {
      status = wait_for_event(event, -1);
    }
  } catch (...) {
    release_after_event(event, operation);
    throw;
  }
  // The wait sets this thread's message.
  check(status == ISTHMUS_OK ? status : isthmus_event_wait(event, 0));
}

isthmus_event_t* add_event(OperationArguments& arguments, nb::handle object) {
  nb::object event_object =
      event_of(object) != nullptr ? nb::borrow(object) : find_sycl_event(object);
  if (!event_object.is_valid() || !event_of(event_object)->raw) {
    raise_python(PyExc_TypeError,
                 "after must be an Event or a sequence of Events, not one with %.100s",
                 Py_TYPE(object.ptr())->tp_name);
  }
  arguments.event_objects.push_back(event_object);
  return event_of(event_object)->raw.get();
}

}  // namespace

OperationArguments::OperationArguments(nb::handle queue_argument, nb::handle events, bool blocks)
    : queue{raw_queue(queue_argument, queue_object)}, blocking{blocks} {
  if (!events.is_valid() || events.is_none() ||
      (PyTuple_CheckExact(events.ptr()) && PyTuple_GET_SIZE(events.ptr()) == 0)) {
    return;
  }
  if (event_of(events) != nullptr || PyCapsule_CheckExact(events.ptr()) != 0 ||
      nb::hasattr(events, "_get_capsule")) {
    after.push_back(add_event(*this, events));
    return;
  }
  if (Py_TYPE(events.ptr())->tp_iter == nullptr && PySequence_Check(events.ptr()) == 0) {
    raise_python(PyExc_TypeError, "after must be an Event or a sequence of Events, not %R",
                 events.ptr());
  }
  for (nb::handle each : events) {
    after.push_back(add_event(*this, each));
  }
}

nb::object run_operation(Operation& operation, Submission submit, void* closure) {
  drain_deferred();
  const auto& arguments = operation.arguments;
  std::array<isthmus_owner_t, 2> owners;
  isthmus_operation_t options{sizeof options, arguments.after.data(), arguments.after.size(),
                              owners.data(), 0};
  for (auto* each : operation.endpoints) {
    if (!arguments.blocking && each != nullptr && each->memory != nullptr) {
      owners[options.owner_count++] = defer_owner(each->memory.release());
    }
  }
  EventHandle submitted;
  const bool keeps_lock = may_keep_lock(operation);
  const bool is_synchronous = !keeps_lock && may_run_synchronously(operation);
  const auto call = [&] {
    return submit(closure, &options, is_synchronous ? nullptr : submitted.out());
  };
  if (keeps_lock) {
    check(call());
  } else {
    submit_interruptibly(call, submitted, operation);
  }
  if (is_synchronous) {
    return nb::none();
  }
  if (!arguments.blocking) {
    return wrap(std::move(submitted));
  }
  finish_blocking(submitted.get(), operation);
  return nb::none();
}

}  // namespace isthmus::python
