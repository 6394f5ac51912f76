// SPDX-License-Identifier: Apache-2.0
#pragma once
// Determines which tags hold a pool's memory, as far as tracking resources above the pool record
// the tags. Thread-safe.

#include <string>

#include "memory/memory_resource.hpp"
#include "memory/snapshot.hpp"

namespace isthmus {

// Stores the tags that hold the most memory in `out`; none if there is no host memory for counting.
void find_holders(const MemoryResource& base, Snapshot& out) noexcept;
// Returns "; of the live memory, layer1 has 3 MiB in 12 blocks, ...", or "" if no tag is recorded.
[[nodiscard]] std::string describe_holders(const Snapshot& snapshot);

}  // namespace isthmus
