// SPDX-License-Identifier: Apache-2.0
#pragma once
// Snapshots of pools as Python objects. Needs the interpreter's lock.
//
// Does not use errors.hpp, which adds a snapshot to the error of a request that found no memory.

#include "core/common.hpp"

namespace isthmus::python {

// The named tuple of isthmus._pressure with that name.
[[nodiscard]] nb::object named_tuple(const char* name);
// The isthmus.memory.Snapshot for the library's snapshot.
[[nodiscard]] nb::object to_snapshot(const isthmus_snapshot_t& raw);
// The snapshot of the request that this thread's last error is about; None if it is about none.
[[nodiscard]] nb::object snapshot_of_error();

}  // namespace isthmus::python
