#pragma once
// Ending a wait early: a thread may have a function that is called between slices of its waits.
//
// Only waits use it after whose end the call can fail as if it had not been made: those of requests
// for memory, and of a queue for others. A free always waits to the end.

#include <isthmus/isthmus.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

// The calling thread's. Without a function its waits are not cut into slices.
ISTHMUS_TLS_MODEL inline thread_local constinit isthmus_interrupt_t thread_interrupt{};
inline constexpr std::chrono::milliseconds k_interrupt_slice{50};

// Calls it: CALLBACK with its message where the wait is to end. Pre: no lock is held that it may
// need, and it may call anything.
[[nodiscard]] result<void> call_interrupt();

// `wait(deadline)` blocks until then at most, and returns whether there is nothing left to wait
// for. False: `until` has passed.
template <class Wait>
[[nodiscard]] result<bool> wait_in_slices(
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
