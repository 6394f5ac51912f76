// SPDX-License-Identifier: Apache-2.0
#pragma once
// Interrupting a wait: a thread can set a function that is called between slices of its waits.
//
// Only waits in calls that can still fail without any effect can be interrupted: waits of memory
// requests, and waits of a queue for other queues. The wait of a free cannot. Each thread has its
// own function, so no lock is needed.

#include <isthmus/isthmus.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

// The function of the calling thread. Without one its waits are not divided into slices.
ISTHMUS_TLS_MODEL inline thread_local constinit isthmus_interrupt_t thread_interrupt{};
inline constexpr std::chrono::milliseconds k_interrupt_slice{50};

// Calls the function. Returns CALLBACK, with the function's message, if the function interrupts the
// wait. Pre: the caller holds no lock, since the function may call anything.
[[nodiscard]] Result<void> call_interrupt();

// `wait(deadline)` blocks at most until the deadline and returns whether the awaited condition
// holds. The result is false if `until` has passed.
template <class Wait>
[[nodiscard]] Result<bool> wait_in_slices(
    const std::optional<std::chrono::steady_clock::time_point>& until, Wait&& wait) {
  for (;;) {
    auto slice = until;
    if (thread_interrupt.function != nullptr) {
      const auto next = std::chrono::steady_clock::now() + k_interrupt_slice;
      slice = until ? std::min(*until, next) : next;
    }
    if (wait(slice)) {
      return true;
    }
    if (slice == until) {
      return false;
    }
    ISTHMUS_TRY(call_interrupt());
  }
}

}  // namespace isthmus
