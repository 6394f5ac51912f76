// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waits that Ctrl-C interrupts: slices of 50 ms without the interpreter's lock, with signals
// handled between them. Called with the lock held.

#include "core/common.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/interrupts.hpp"

#include <algorithm>
#include <chrono>

namespace isthmus::python {

constexpr std::int64_t k_slice_ns = 50'000'000;

// Calls `wait(nanoseconds)` again as long as it returns TIMEOUT, and returns its last status.
// Throws an exception that a signal handler raised. In a submitted function a wait without a
// timeout is one call: the library reports waits that would never end only if it knows that there
// is no timeout.
template <class Wait>
isthmus_status_t wait_in_slices(std::int64_t timeout_ns, Wait wait) {
  if (is_in_function && timeout_ns < 0) {
    return without_lock([&] { return wait(timeout_ns); });
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    std::int64_t remaining_ns = k_slice_ns;
    if (timeout_ns >= 0) {
      remaining_ns = std::max<std::int64_t>(
          0, timeout_ns - std::chrono::nanoseconds{Clock::now() - start}.count());
    }
    const auto status = without_lock([&] { return wait(std::min(remaining_ns, k_slice_ns)); });
    if (status != ISTHMUS_ERROR_TIMEOUT) {
      return status;
    }
    if (signal_has_raised()) {
      raise_set();
    }
    if (remaining_ns <= k_slice_ns && timeout_ns >= 0) {
      return status;
    }
  }
}

// Waits for the event and returns the operation's own status, TIMEOUT or DEADLOCK. Keeps the
// interpreter's lock if the event has completed.
inline isthmus_status_t wait_for_event(isthmus_event_t* event, std::int64_t timeout_ns) {
  const auto status = isthmus_event_status(event);
  if (status != ISTHMUS_PENDING) {
    return status;
  }
  return wait_in_slices(timeout_ns,
                        [event](std::int64_t slice) { return isthmus_event_wait(event, slice); });
}

// Raises the error of a wait that returned without waiting: DEADLOCK, of an event that is pending.
inline void check_has_waited(isthmus_event_t* event, isthmus_status_t status) {
  if (status == ISTHMUS_ERROR_DEADLOCK && isthmus_event_status(event) == ISTHMUS_PENDING) {
    check(status);
  }
}

// Waits for work that is pending at the call, not for work that is submitted meanwhile.
// `wait(nanoseconds)` waits directly, and serves short timeouts. `pending(event)` stores an event
// that completes once all work that is pending now has ended.
template <class Wait, class Pending>
isthmus_status_t wait_for_pending(std::int64_t timeout_ns, Wait wait, Pending pending) {
  if (timeout_ns >= 0 && timeout_ns <= k_slice_ns) {
    return without_lock([&] { return wait(timeout_ns); });
  }
  EventHandle event;
  const auto status = without_lock([&] { return pending(event.out()); });
  return status == ISTHMUS_OK ? wait_for_event(event.get(), timeout_ns) : status;
}

// Waits for the buffer, on any queue. Releases the interpreter's lock only if something is pending.
inline isthmus_status_t wait_for_buffer(isthmus_buffer_t* buffer, std::int64_t timeout_ns) {
  auto status = isthmus_buffer_wait(buffer, 0);
  if (status != ISTHMUS_ERROR_TIMEOUT && status != ISTHMUS_ERROR_DEPENDENCY) {
    return status;
  }
  status = wait_for_pending(
      timeout_ns, [buffer](std::int64_t ns) { return isthmus_buffer_wait(buffer, ns); },
      [buffer](isthmus_event_t** event) { return isthmus_buffer_pending(buffer, event); });
  if (status != ISTHMUS_OK) {
    return status;
  }
  status = isthmus_buffer_wait(buffer, 0);  // the event does not report failed copies
  return status == ISTHMUS_ERROR_TIMEOUT ? ISTHMUS_OK : status;  // submitted meanwhile, or exported
}

inline isthmus_status_t wait_for_queue(isthmus_queue_t* queue, std::int64_t timeout_ns) {
  return wait_for_pending(
      timeout_ns, [queue](std::int64_t ns) { return isthmus_queue_wait(queue, ns); },
      [queue](isthmus_event_t** event) { return isthmus_queue_pending(queue, event); });
}

}  // namespace isthmus::python
