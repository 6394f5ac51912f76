// SPDX-License-Identifier: Apache-2.0
#pragma once
// Retains references to queues for a while after the library's last operation on them has ended.
// Thread-safe.
//
// Intel's OpenCL runtime for CPUs destroys an out-of-order queue on the thread that releases its
// last reference. That can be one of the runtime's own threads which has not quite finished a
// command whose completion was already reported. It then waits for itself indefinitely, and all
// other queues wait with it. Nothing reports when the thread has finished; neither clFinish nor the
// event of a barrier is ordered after that. On two busy processors this affects one queue in
// several hundred, also without this library.

#include <cstdint>
#include <memory>

#include "backend/event.hpp"

namespace isthmus {

// Releases `object` at least a second after all of `running` were found to have ended. The release
// happens in a call of one of these two functions, never inside a driver call. Replaces the object
// of an entry with the same key. Releasing `object` may call this function again. Pre: `key` is
// unique while `object` exists; the caller holds no lock. Throws std::bad_alloc, and then nothing
// was done.
void release_later(std::uintptr_t key, WaitList running, std::shared_ptr<void> object);
// Scans the oldest entries, at most 64, and releases the expired ones; a single load if there are
// none. Pre: the caller holds no lock.
void release_expired() noexcept;

}  // namespace isthmus
