// SPDX-License-Identifier: Apache-2.0
#pragma once
// Determines which tags hold a pool's memory, as far as tracking resources above the pool record
// the tags. Thread-safe.

#include <string>
#include <vector>

#include "memory/base/memory_resource.hpp"
#include "memory/base/snapshot.hpp"

namespace isthmus {

// Adds the live blocks of each tag to `out`, as recorded above `base`. Throws std::bad_alloc.
using HolderCount = void (*)(const MemoryResource& base, std::vector<Holder>& out);
// Sets the function that `find_holders` calls. Tracking resources set it; until the first one is
// created, no holders are found.
void set_holder_count(HolderCount function) noexcept;

// Stores the tags that hold the most memory in `out`; none if there is no host memory for counting.
void find_holders(const MemoryResource& base, Snapshot& out) noexcept;
// Returns "of the live memory, layer1 has 3 MiB in 12 blocks, ...", or "" if no tag is recorded.
[[nodiscard]] std::string describe_holders(const Snapshot& snapshot);
// For example "3 MiB (3145728 bytes) in 2 blocks".
[[nodiscard]] std::string describe_blocks(std::size_t nbytes, std::size_t count);

}  // namespace isthmus
