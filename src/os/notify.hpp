// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notifies an event loop through a file descriptor. Thread-safe.

#include "core/status.hpp"

namespace isthmus::os {

// A new descriptor of the same file; INVALID_ARGUMENT if `descriptor` is invalid.
[[nodiscard]] Result<int> duplicate_descriptor(int descriptor);
// Writes the number 1 as 8 bytes, as an eventfd requires, unless that would block; then closes the
// descriptor.
void notify_and_close(int descriptor) noexcept;

}  // namespace isthmus::os
