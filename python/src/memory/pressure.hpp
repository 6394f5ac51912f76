// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a pool handles a shortage of memory, and its contents: snapshots, out-of-memory stages,
// out-of-memory callbacks. Needs the interpreter's lock.

#include "core/resource_objects.hpp"

namespace isthmus::python {

// The isthmus.memory.Snapshot of a pool; raises for another resource.
[[nodiscard]] nb::object snapshot_of_pool(const PoolResource& resource);
// A dictionary from name to isthmus.memory.OomStageCounts, in the order in which the stages are
// tried.
[[nodiscard]] nb::object stages_of_pool(const PoolResource& resource);

// Called when the interpreter ends.
void close_oom_callbacks() noexcept;

}  // namespace isthmus::python
