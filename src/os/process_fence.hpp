// SPDX-License-Identifier: Apache-2.0
#pragma once
// A memory fence in all threads of the process at once (membarrier), so that frequent operations of
// a thread need none.
//
// For two threads that each write a word and then read the other's: the thread that does so rarely
// pays for both, 0.1 to 0.6 us, and the other only needs a compiler fence.

namespace isthmus::os {

// Call this before the first `process_fence`; it may be repeated. False if the kernel does not
// support it (before Linux 4.14, or in a sandbox that forbids it): then both threads need fences of
// their own.
[[nodiscard]] bool register_process_fence() noexcept;
// Everything that any thread wrote before is visible to this thread, and its earlier writes are
// visible to them. False if the kernel refused, in a sandbox that the process entered meanwhile;
// then there was no fence. Pre: `register_process_fence` succeeded.
[[nodiscard]] bool process_fence() noexcept;

}  // namespace isthmus::os
