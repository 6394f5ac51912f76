// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that no other process can predict.

#include <cstddef>
#include <span>

namespace isthmus::os {

// From the kernel's generator; from the clock and the address layout if the kernel refuses (Linux
// before 3.17, or a filter of system calls). Pre: at most 256 bytes. Thread-safe.
void fill_random(std::span<std::byte> out) noexcept;

}  // namespace isthmus::os
