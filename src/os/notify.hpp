#pragma once
// Telling an event loop through a file descriptor.

#include "core/status.hpp"

namespace isthmus::os {

// A descriptor of our own for the same file; INVALID_ARGUMENT if `descriptor` is none.
[[nodiscard]] result<int> duplicate_descriptor(int descriptor);
// Writes the number 1 as 8 bytes, what an eventfd takes.
void notify_and_close(int descriptor) noexcept;

}  // namespace isthmus::os
