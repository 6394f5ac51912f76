// SPDX-License-Identifier: Apache-2.0
#pragma once
// Interrupting a wait: a thread can set a function that is called between slices of its waits.
//
// Three kinds of waits can be interrupted: those of memory requests, those of a queue for other
// queues, and the wait for running calls of an out-of-memory callback that is being removed. The
// first two are in calls that can still fail without any effect. The wait of a free cannot be
// interrupted. Each thread has its own function, so no lock is needed.

#include <isthmus/isthmus.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

// The function of the calling thread. The waits of a thread without one are not divided into
// slices.
ISTHMUS_TLS_MODEL inline thread_local constinit isthmus_interrupt_t thread_interrupt{};
inline constexpr std::chrono::milliseconds k_interrupt_slice{50};

// Calls the function. Returns CALLBACK, with the function's message, if the function interrupts the
// wait. The caller holds no lock, since the function may call anything.
[[nodiscard]] Result<void> call_interrupt();

// Waits until a condition holds or `deadline` has passed. `wait(slice_end)` blocks at most until
// its argument and returns whether the condition holds, as this function does.
template <class Wait>
[[nodiscard]] Result<bool> wait_in_slices(
    const std::optional<std::chrono::steady_clock::time_point>& deadline, Wait&& wait) {
  for (;;) {
    auto slice_end = deadline;
    if (thread_interrupt.function != nullptr) {
      const auto next = std::chrono::steady_clock::now() + k_interrupt_slice;
      slice_end = deadline ? std::min(*deadline, next) : next;
    }
    if (wait(slice_end)) {
      return true;
    }
    if (slice_end == deadline) {
      return false;
    }
    ISTHMUS_TRY(call_interrupt());
  }
}

}  // namespace isthmus
