#pragma once
// Memory of the host that can move, by mremap. Private to the process, as all its memory: a forked
// child has a copy, where a memfd's pages would be shared with it.

#include "backend/chunk_source.hpp"

namespace isthmus::host {

// Of every kind; null where the kernel moves no pages. For the whole life of the process.
[[nodiscard]] chunk_source* movable_chunks() noexcept;

}  // namespace isthmus::host
