// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory of the C library with any alignment. Thread-safe.
//
// posix_memalign bypasses the C library's thread cache: in glibc 2.36 it takes 70 ns and more where
// malloc takes 12, and it fragments free memory. So the memory comes from malloc, whose pointer is
// stored just before the aligned one.

#include <cstddef>

namespace isthmus {

// Returns null if there is no memory.
[[nodiscard]] void* allocate_aligned(std::size_t nbytes, std::size_t alignment) noexcept;
// Frees a result of `allocate_aligned`.
void free_aligned(void* pointer) noexcept;

}  // namespace isthmus
