// SPDX-License-Identifier: Apache-2.0
#pragma once
// A memory fence in all threads of the process at once (membarrier), so that frequent operations of
// a thread need none.
//
// Use it if two threads each write a word and then read the other thread's word. The thread that
// does so rarely calls the process fence, which takes 0.1 to 0.6 us; the other one needs only a
// compiler fence.

namespace isthmus::os {

// Must have succeeded before the first `process_fence`; repeated calls are allowed. False if the
// kernel does not support the fence (before Linux 4.14, or in a sandbox that forbids it): then both
// threads need a hardware fence.
[[nodiscard]] bool register_process_fence() noexcept;
// Makes earlier writes of all threads visible to this thread, and its earlier writes visible to all
// threads. False, without a fence, if the kernel refuses, as in a sandbox that the process entered
// meanwhile.
[[nodiscard]] bool process_fence() noexcept;

}  // namespace isthmus::os
