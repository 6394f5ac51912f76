// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory that is moved with mremap. It is private, like other memory of the process: a forked
// child gets a copy, whereas it would share the pages of a memfd.

#include "backend/chunk_source.hpp"

namespace isthmus::host {

// Serves every kind. Null if the kernel cannot move pages. Never destroyed. Thread-safe.
[[nodiscard]] ChunkSource* movable_chunks() noexcept;

}  // namespace isthmus::host
