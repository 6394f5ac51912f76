#pragma once
// A memory fence in all threads of the process at once, so that what they do often needs none.
//
// For two threads that each write a word and then read the other's: who does so seldom pays for
// both, some 0.1 to 0.6 us, and the other only keeps the compiler from changing the order.

namespace isthmus::os {

// Before the first, and any number of times. False where the kernel has none (before Linux 4.14, or
// in a sandbox that forbids it): both threads need fences of their own then.
[[nodiscard]] bool arm_process_fence() noexcept;
// What any thread wrote before is seen here, and it sees what was written here. False if the kernel
// refused, and there was none: in a sandbox that the process went into meanwhile. Pre: armed.
[[nodiscard]] bool process_fence() noexcept;

}  // namespace isthmus::os
