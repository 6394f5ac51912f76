#pragma once
// Who holds a pool's memory: as far as tracking resources over it know.

#include <string>

#include "memory/memory_resource.hpp"
#include "memory/snapshot.hpp"

namespace isthmus {

// The largest ones by tag; none where there is no memory to count with.
void find_holders(const memory_resource& base, snapshot& into) noexcept;
// "; of what is live layer1 has 3 MiB in 12 blocks, ...", or "" if nobody knows.
[[nodiscard]] std::string describe_holders(const snapshot& seen);

}  // namespace isthmus
