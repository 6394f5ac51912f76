#pragma once
// What a pool does when memory is short, and what it has: snapshots, rungs, reclaim callbacks.

#include "objects.hpp"

namespace isthmus::python {

// isthmus.memory.Snapshot of a pool, raises for what is none.
[[nodiscard]] nb::object snapshot_of_pool(const pool_resource& of);
// Of the request that this thread's last error is about; None if it is about none.
[[nodiscard]] nb::object snapshot_of_error();
// Name to isthmus.memory.RungCounts, in the order in which they are tried.
[[nodiscard]] nb::object rungs_of_pool(const pool_resource& of);

// At the interpreter's end.
void close_reclaimers() noexcept;

}  // namespace isthmus::python
