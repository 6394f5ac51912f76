#pragma once
// Bytes that nobody outside the process can predict.

#include <cstddef>
#include <span>

namespace isthmus::os {

// From the kernel's generator; from the clock and the address layout where it refuses (Linux before
// 3.17, or a filter of system calls). Pre: at most 256 bytes. Safe for threads.
void fill_random(std::span<std::byte> out) noexcept;

}  // namespace isthmus::os
