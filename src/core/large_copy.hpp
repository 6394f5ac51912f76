#pragma once
// Copies too large for the caches, by several threads.

#include <cstddef>

namespace isthmus {

// From here on source and destination no longer share a core's caches: starting threads (20 us
// each) is worth it, and so is writing past the caches, which saves reading the destination first.
constexpr std::size_t k_large_copy = std::size_t{16} << 20;

// Returns once all is copied. Threads are the caller's own for the time of the call; where none can
// be had the caller does it all.
void copy_large(void* destination, const void* source, std::size_t nbytes) noexcept;

}  // namespace isthmus
