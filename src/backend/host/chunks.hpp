// SPDX-License-Identifier: Apache-2.0
#pragma once
// Movable host memory, by mremap. Like all memory of the process it is private: a forked child gets
// a copy, whereas it would share the pages of a memfd.

#include "backend/chunk_source.hpp"

namespace isthmus::host {

// Serves every kind. Null if the kernel cannot move pages. Never destroyed. Thread-safe.
[[nodiscard]] ChunkSource* movable_chunks() noexcept;

}  // namespace isthmus::host
