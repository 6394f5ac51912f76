// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polls events that have continuations, where the driver has no good notification of its own. A
// single thread serves the process; it is started for the first such event and never ends.
//
// Between polls it sleeps, longer each time while nothing completes: completion is noticed about
// 0.1 ms late or, if that is more, late by an eighth of the operation's duration, at most 1 ms.
// Without events to poll it sleeps until one is added. Thread-safe.

#include "backend/polled_event.hpp"

namespace isthmus {

// Polls the event until it has completed. Pre: called at most once for each event. Takes a
// reference, allocates nothing, never blocks. If the thread cannot be started now, a later call of
// this function or the next one starts it.
void watch_till_complete(PolledEvent& pending) noexcept;
// Starts the thread if an earlier attempt failed; otherwise a single load.
void start_watching_again() noexcept;
// For a thread that is about to sleep until an event has completed: the time to sleep until.
// `until`, or earlier while there is no polling thread. The caller then polls all watched events
// itself (`look_without_thread`) and sleeps again.
[[nodiscard]] os::Deadline until_next_look(const os::Deadline& until) noexcept;
void look_without_thread() noexcept;

}  // namespace isthmus
