#pragma once
// Gives memory back whose last reference went while operations used it.

#include <vector>

#include "memory/allocation.hpp"

namespace isthmus {

// Lets `record` go once all of `running` have completed, on a thread of the library: a driver's
// callback must not call the driver. Never blocks. Throws std::bad_alloc, and then nothing is done.
void reclaim_after(allocation& record, const std::vector<ref<event>>& running);
// The same for a thread that must not ask a driver what is running: the reaper asks.
void retire_later(allocation& record) noexcept;

}  // namespace isthmus
