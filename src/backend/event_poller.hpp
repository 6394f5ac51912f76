// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polls events that have continuations, where the driver has no good notification of its own. A
// single thread serves the process; it is started for the first such event and never ends.
//
// Between polls it sleeps, longer each time while nothing completes. It notices completion with a
// delay of about 0.1 ms or, if that is more, of an eighth of the operation's duration, at most 1
// ms. Without events to poll it sleeps until one is added. Thread-safe.

#include "backend/polled_event.hpp"

namespace isthmus {

// Polls the event until it has completed. Pre: called at most once for each event. Takes a
// reference, allocates nothing, never blocks. If the thread cannot be started now, a later call of
// this function or the next one starts it.
void poll_until_complete(PolledEvent& pending) noexcept;
// Starts the thread if an earlier attempt failed; otherwise a single load.
void ensure_poller_started() noexcept;
// For a thread that is about to sleep until an event has completed: the time to sleep until.
// Returns `until`, or an earlier time while there is no polling thread. The caller then polls all
// registered events itself (`poll_without_thread`) and sleeps again.
[[nodiscard]] os::Deadline next_poll_deadline(const os::Deadline& until) noexcept;
void poll_without_thread() noexcept;

}  // namespace isthmus
