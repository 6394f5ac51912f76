#pragma once
// The thread that looks at events for which somebody has left a continuation, where a driver has no
// good way of its own to tell: one for the process, started with the first of them, never ended.
//
// It sleeps between looks, ever longer while nothing happens: the end of an operation is noticed
// some 0.1 ms late, or an eighth of the time that it took, at most 1 ms. It sleeps for good when
// there is nothing to look at.

#include "backend/late_event.hpp"

namespace isthmus {

// Until it has completed; once for each event. Takes a reference, needs no memory, never waits.
// Where no thread can be had now it is started by a later call of one of these two.
void watch_till_complete(late_event& pending) noexcept;
// Starts the thread where an earlier attempt failed. One load where none did.
void start_watching_again() noexcept;
// For a thread that is about to sleep until an event has completed: `until`, or sooner while there
// is no such thread. Then it is to look at all that is watched itself, and to sleep again.
[[nodiscard]] os::deadline until_next_look(const os::deadline& until) noexcept;
void look_without_thread() noexcept;

}  // namespace isthmus
