// SPDX-License-Identifier: Apache-2.0
#pragma once
// Takes the written ranges of many tracked memories with one scan by the kernel. Thread-safe for
// different memories.

#include <span>

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Calls `take` on each memory; memories that are tracked by pages share one scan. No other
// call on these memories runs concurrently.
void take_all(std::span<const TrackedMemory::Taking> requests);

}  // namespace isthmus::tracking
