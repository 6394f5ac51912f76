// SPDX-License-Identifier: Apache-2.0
// Events.

#include <memory>

#include "backend/drivers.hpp"
#include "backend/library_threads.hpp"
#include "c/common.hpp"
#include "core/threads.hpp"
#include "os/notify.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// Notifies an event loop through its descriptor.
class Notification final : public Continuation {
 public:
  void set_descriptor(int descriptor) noexcept { descriptor_ = descriptor; }
  void run(Event&) noexcept override {
    os::notify_and_close(descriptor_);
    delete this;
  }

 private:
  int descriptor_ = -1;
};

// Releases an owner when the event completes, which notifies the caller. The release may be a
// function of the program that uses the library. It runs on this thread if the event had completed
// before, or if the program completes it, after everything else that waits for the event.
// Otherwise this thread may be in a driver's callback or hold locks, and the release runs on a
// library thread.
class OwnerRelease final : public Continuation {
 public:
  explicit OwnerRelease(Owner owner) : Continuation{Turn::last}, owner_{std::move(owner)} {}
  void run(Event&) noexcept override {
    if (!in_continuation()) {
      delete this;
      return;
    }
    run_on_library_thread([this] { release(); }, [this](const Error&) { delete this; });
  }

 private:
  // Counts as a driver call: the process may begin to end as soon as the event has completed.
  void release() noexcept {
    const os::DriverCall calls;
    const SignalsOfStarter starter_signals;
    delete this;
  }

  Owner owner_;
};

// Returns the outcome of a completed event, and marks a failure as reported.
Error report_outcome(Event& event) {
  if (!event.succeeded()) {
    event.note_reported();
  }
  return event.outcome();
}

}  // namespace

void isthmus_event_retain(isthmus_event_t* event) noexcept {
  if (event != nullptr) {
    object(event)->retain_handle();
  }
}

void isthmus_event_release(isthmus_event_t* event) noexcept {
  if (event != nullptr && !os::is_forked_child()) {
    object(event)->release_handle();
  }
}

isthmus_status_t isthmus_event_status(isthmus_event_t* event) noexcept {
  if (event != nullptr && object(event)->succeeded()) {
    return ISTHMUS_OK;
  }
  bool pending = false;
  const auto code = driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    pending = object(event)->poll() == ISTHMUS_PENDING;
    return pending ? Error{} : report_outcome(*object(event));
  });
  return pending ? ISTHMUS_PENDING : code;
}

void isthmus_event_mark_reported(isthmus_event_t* event) noexcept {
  if (event != nullptr) {
    object(event)->note_reported();
  }
}

isthmus_status_t isthmus_event_wait(isthmus_event_t* event, int64_t timeout_ns) noexcept {
  return driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    auto result = object(event)->wait(os::deadline_after(timeout_ns));
    return object(event)->settled() ? report_outcome(*object(event)) : result.take_error();
  });
}

isthmus_status_t isthmus_event_notify(isthmus_event_t* event, int fd) noexcept {
  return driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    // Allocated before there is a descriptor to leak.
    auto notification = std::make_unique<Notification>();
    auto duplicate = os::duplicate_descriptor(fd);
    ISTHMUS_TRY(duplicate);
    notification->set_descriptor(*duplicate);
    object(event)->on_complete(*notification.release());
    return {};
  });
}

isthmus_status_t isthmus_event_then(isthmus_event_t* event, isthmus_owner_t raw_owner) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    object(event)->on_complete(*new OwnerRelease{std::move(owner)});
    return {};
  });
}

isthmus_status_t isthmus_event_create(isthmus_event_t** event) noexcept {
  return entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    *event = handle(Ref<isthmus::Event>{make_ref<HostEvent>()}.detach());
    return {};
  });
}

isthmus_status_t isthmus_event_complete(isthmus_event_t* event, isthmus_status_t status,
                                        const char* message) noexcept {
  return driver_entry(ISTHMUS_NEEDS(event), [&]() -> Result<void> {
    auto* target = dynamic_cast<HostEvent*>(object(event));
    if (target == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this event belongs to an operation: only a host event can be completed by the "
                  "program");
    }
    const bool failed = is_error(status);
    // TIMEOUT is reserved: a wait returns it for an event that has not completed.
    if ((!failed && status != ISTHMUS_OK) || status == ISTHMUS_ERROR_TIMEOUT) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "an event cannot be completed with status {}: use 0, or an error other than "
                  "TIMEOUT, {} to {}",
                  status, ISTHMUS_ERROR_DEADLOCK + 0, ISTHMUS_ERROR_INVALID_ARGUMENT + 0);
    }
    if (!target->finish(failed ? Error{status, message == nullptr ? status_name(status) : message}
                               : Error{})) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "the event is already complete: it can be completed only once");
    }
    return {};
  });
}

isthmus_status_t isthmus_event_times_info(isthmus_event_t* event,
                                          isthmus_event_times_info_t* info) noexcept {
  bool pending = false;
  const auto code = driver_entry(ISTHMUS_NEEDS(event, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    pending = object(event)->pending();
    if (pending) {
      return {};
    }
    auto times = object(event)->times();
    ISTHMUS_TRY(times);
    info->submitted_ns = times->submitted_ns;
    info->started_ns = times->started_ns;
    info->ended_ns = times->ended_ns;
    return {};
  });
  return pending ? ISTHMUS_PENDING : code;
}

isthmus_status_t isthmus_event_elapsed(isthmus_event_t* event, isthmus_event_t* earlier,
                                       int64_t* elapsed_ns) noexcept {
  bool pending = false;
  const auto code = driver_entry(ISTHMUS_NEEDS(event, earlier, elapsed_ns), [&]() -> Result<void> {
    pending = object(event)->pending() || object(earlier)->pending();
    if (pending) {
      return {};
    }
    return return_value(object(event)->elapsed_since(*object(earlier)), elapsed_ns);
  });
  return pending ? ISTHMUS_PENDING : code;
}

isthmus_status_t isthmus_event_adopt(isthmus_context_t* context, void* native,
                                     isthmus_owner_t raw_owner, isthmus_event_t** event) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(context, native, event), [&]() -> Result<void> {
    return return_handle(object(context)->adopt_event(native, std::move(owner)), event);
  });
}

isthmus_status_t isthmus_event_info(isthmus_event_t* event, isthmus_event_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(event, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    info->backend = backend_of(*object(event));
    info->native = object(event)->native();
    return {};
  });
}
