#pragma once
// Keeps references to queues for a while after the last of our operations there has ended.
//
// Intel's OpenCL runtime for CPUs leaves the end of an out-of-order queue to whoever lets go of its
// last reference. Where that is one of its own threads, not quite done with a command that has been
// said to have ended, it waits there for itself, and all other queues with it: nothing tells when
// it is done, and neither clFinish nor a barrier's event is behind it. On two busy processors that
// is one queue in some hundreds, without this library too.

#include <cstdint>
#include <memory>

#include "backend/event.hpp"

namespace isthmus {

// Lets go of `held` a second or more after all of `running` were found to have ended, on a thread
// that is in one of these two functions: in a call of the driver's never. What lingers by the same
// key gives way to it. `held` may linger again, by this function, when it is let go of. Pre: `key`
// is nobody else's while `held` is; the caller holds no lock. Throws std::bad_alloc, and then
// nothing is done.
void linger(std::uintptr_t key, wait_list running, std::shared_ptr<void> held);
// Looks at those that have lingered for longest, at most 64 of them; a load where there are none.
// Pre: the caller holds no lock.
void end_lingering() noexcept;

}  // namespace isthmus
