// SPDX-License-Identifier: Apache-2.0
#pragma once
// Encloses a driver call that both threads of the program and library threads make. Calls on
// library threads are counted, so that process exit waits for them. Each object is used by one
// thread, for the duration of one call.

#include <optional>

#include "core/status.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"

namespace isthmus {

class CallOfAnyThread {
 public:
  CallOfAnyThread() noexcept {
    if (on_library_thread()) {
      counted_.emplace();
    }
  }
  // Whether the driver may be called.
  [[nodiscard]] explicit operator bool() const noexcept {
    return counted_ ? static_cast<bool>(*counted_) : !os::drivers_unavailable();
  }

 private:
  std::optional<os::DriverCall> counted_;
};

// The error to return if the driver must not be called.
[[nodiscard]] inline Error driver_unavailable_error() {
  return fail(ISTHMUS_ERROR_FORKED,
              "the driver cannot be called: this is a forked child, or main has returned");
}

}  // namespace isthmus
