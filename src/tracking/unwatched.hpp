#pragma once
// Copies and comparisons of memory that its user's threads may be writing meanwhile: what is read
// of such a byte may be its old value or its new one, and ThreadSanitizer is told nothing.

#include <cstddef>

#include "core/range_set.hpp"

namespace isthmus::tracking {

void copy_unwatched(void* destination, const void* source, std::size_t nbytes) noexcept;
[[nodiscard]] bool same_unwatched(const void* one, const void* other, std::size_t nbytes) noexcept;
// Adds each run of bytes that differ, counted from `first`.
void add_differences(const std::byte* one, const std::byte* other, std::size_t nbytes,
                     std::size_t first, range_set& differing);

}  // namespace isthmus::tracking
