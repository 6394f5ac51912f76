#pragma once
// The thread that looks at events for which somebody has left a continuation, where a driver has no
// good way of its own to tell: one for the process, started with the first of them, never ended.
//
// It sleeps between looks, ever longer while nothing happens: the end of an operation is noticed
// some 0.1 ms late, or an eighth of the time that it took, at most 1 ms. It sleeps for good when
// there is nothing to look at.

#include "backend/event.hpp"

namespace isthmus {

// Till it has completed. Takes a reference; false, and then nothing is done, if no thread can be
// had for it or no memory.
[[nodiscard]] bool watch_till_complete(event& pending) noexcept;

}  // namespace isthmus
