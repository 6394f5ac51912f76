// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and comparisons of memory that other threads may be writing: each byte is read as its old
// or its new value. These races are intended and hidden from ThreadSanitizer. Thread-safe.

#include <cstddef>

#include "core/range_set.hpp"

namespace isthmus::tracking {

void copy_unwatched(void* destination, const void* source, std::size_t nbytes) noexcept;
[[nodiscard]] bool same_unwatched(const void* one, const void* other, std::size_t nbytes) noexcept;
// Adds to `differing` each maximal range of bytes that differ; offset 0 of the arguments is `first`
// in the set.
void add_differences(const std::byte* one, const std::byte* other, std::size_t nbytes,
                     std::size_t first, RangeSet& differing);

}  // namespace isthmus::tracking
