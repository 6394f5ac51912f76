#pragma once
// A copy that writes past the caches, which saves reading the destination first: for bytes that
// nobody looks at soon.
//
// glibc's memcpy does so from a size on that it takes from what the processor says of its caches,
// which under a hypervisor is often far too large: 64 MiB took 12.5 ms on one core, this 7.5.

#include <cstddef>

namespace isthmus {

void stream_copy(void* destination, const void* source, std::size_t nbytes) noexcept;

}  // namespace isthmus
