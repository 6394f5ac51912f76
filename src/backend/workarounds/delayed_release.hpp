// SPDX-License-Identifier: Apache-2.0
#pragma once
// Retains references to queues for at least a second after the library's last operation on them has
// completed. Thread-safe.
//
// Intel's OpenCL runtime for CPUs destroys an out-of-order queue on the thread that releases its
// last reference. That thread can be one of the runtime's own, which is still finishing a command
// whose completion was already reported. It then waits for itself indefinitely, and so do all other
// queues. The runtime does not report when the thread has finished: neither clFinish nor the event
// of a barrier waits for that. On two busy processors this affects one queue in several hundred,
// also without this library.

#include <cstdint>
#include <memory>

#include "backend/event.hpp"

namespace isthmus {

// Releases `object` at least a second after a query has shown that all of `running` have completed.
// The release happens in a call of one of these two functions, never inside a driver call. Replaces
// the object of an entry with the same key. Releasing `object` may call this function again. `key`
// is unique while `object` exists. The caller holds no lock. Throws std::bad_alloc without any
// effect.
void release_later(std::uintptr_t key, WaitList running, std::shared_ptr<void> object);
// Scans the oldest entries, at most 64, and releases those that have expired. Costs a single load
// if there are no entries. The caller holds no lock.
void release_expired() noexcept;

}  // namespace isthmus
