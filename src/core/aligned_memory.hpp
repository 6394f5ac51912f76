#pragma once
// Memory of the C library's with any alignment.
//
// posix_memalign does without the thread's cache: glibc 2.36 takes 70 ns and more for what malloc
// does in 12, and cuts free memory into pieces. So the pointer that malloc gave is kept in front of
// the aligned one.

#include <cstddef>

namespace isthmus {

// Null without memory. Pre: a power of two.
[[nodiscard]] void* allocate_aligned(std::size_t nbytes, std::size_t alignment) noexcept;
void free_aligned(void* pointer) noexcept;

}  // namespace isthmus
