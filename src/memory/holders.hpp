// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which tags hold a pool's memory, as far as tracking resources above the pool record it.
// Thread-safe.

#include <string>

#include "memory/memory_resource.hpp"
#include "memory/snapshot.hpp"

namespace isthmus {

// Stores the tags that hold most; none if there is no memory for counting.
void find_holders(const MemoryResource& base, Snapshot& out) noexcept;
// "; of what is live layer1 has 3 MiB in 12 blocks, ...", or "" if nothing is recorded.
[[nodiscard]] std::string describe_holders(const Snapshot& snapshot);

}  // namespace isthmus
