// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/event.hpp"

#include "backend/sycl/errors.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {

void Operation::submitted(OwnedEvent reference) noexcept {
  reference_ = std::move(reference);
  mark_enqueued();
}

void Operation::refresh() noexcept {
  if (!is_enqueued()) {
    return;
  }
  const CallOfAnyThread counted;
  if (!counted) {
    complete(driver_unavailable_error());
    return;
  }
  switch (calls_.event_status(reference())) {
    case dp::k_status_complete: complete({}); break;
    case dp::k_status_unknown: complete(call_failed("the operation")); break;
    default: break;
  }
}

// Uses SYCL's own wait, in which a runtime on the host may execute commands on the calling thread.
void Operation::block(const os::Deadline& until) noexcept {
  if (!until && !on_library_thread() && wait_until_enqueued(until) && !settled() &&
      !os::drivers_unavailable()) {
    call_safely(calls_.wait_for_event, reference());
    refresh();
  }
  if (!settled()) {
    PolledEvent::block(until);
  }
}

Result<EventTimes> Operation::do_times() {
  if (os::drivers_unavailable()) {
    return driver_unavailable_error();
  }
  const EventTimes result{calls_.submitted_at(reference()), calls_.started_at(reference()),
                          calls_.ended_at(reference())};
  if (result.ended_ns == 0) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "the times of this operation are not available: its queue was created without profiling");
  }
  return result;
}

}  // namespace isthmus::sycl
