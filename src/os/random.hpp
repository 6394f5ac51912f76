// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that no other process can predict.

#include <cstddef>
#include <span>

namespace isthmus::os {

// Fills `out` from the kernel's generator or, if the kernel refuses, from the clock and the address
// layout (Linux before 3.17, or a filter of system calls). Thread-safe.
void fill_random(std::span<std::byte> out) noexcept;

}  // namespace isthmus::os
