// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polls events that have continuations, for drivers without suitable completion callbacks. A single
// thread serves the process; it is started for the first such event and never ends.
//
// Between polls the thread sleeps, longer each time while no event completes. It detects completion
// with a delay of about 0.1 ms or an eighth of the operation's duration, whichever is longer, but
// at most 1 ms. Without events to poll it sleeps until one is added. Thread-safe.

#include "backend/polled_event.hpp"

namespace isthmus {

// Polls the event until it has completed. Pre: called at most once for each event. Retains the
// event until then. Allocates nothing and never blocks. If the thread cannot be started now, a
// later call of this function or of `ensure_poller_started` tries again.
void poll_until_complete(PolledEvent& pending) noexcept;
// Starts the thread if an earlier attempt failed. Otherwise costs a single load.
void ensure_poller_started() noexcept;
// Returns the time until which a thread that waits for an event should sleep. That is `until`, or
// an earlier time while there is no polling thread. In that case the caller polls all registered
// events itself after its sleep (`poll_without_thread`) and sleeps again.
[[nodiscard]] os::Deadline next_poll_deadline(const os::Deadline& until) noexcept;
void poll_without_thread() noexcept;

}  // namespace isthmus
