// SPDX-License-Identifier: Apache-2.0
#pragma once
// The hook at the entry of the C interface, for what the library may do only while a thread of the
// program is in one of its calls (backend/workarounds/query_on_demand.hpp). Thread-safe.
//
// Functions that report or return memory, and functions that wait for all work of a queue, call it
// before anything else, through `entry_after_releases` (c/common.hpp). Functions that free memory
// do not: a host task of SYCL may free memory while the program waits for the queue. Functions that
// allocate memory call `release_large_on_demand` just before they request it from the driver, since
// most allocations are served from freed memory, and a query takes about 0.1 ms.

#include "backend/workarounds/query_on_demand.hpp"
#include "memory/base/deferred_release.hpp"

namespace isthmus {

// Runs the releases on demand, and releases expired queues (backend/workarounds/
// delayed_release.hpp). Waits at most 4 ms. Costs one load in a process that has not created such a
// queue. The caller must hold no lock.
inline void on_library_call() noexcept {
  if (has_queues_queried_on_demand()) [[unlikely]] {
    release_on_demand();
  }
}

}  // namespace isthmus
