// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts endpoints that callers pass (`isthmus_endpoint_t`) to endpoints of a transfer.
// Determines the memory that they denote, and checks its bounds. Thread-safe.
//
// An address without a buffer is one of these:
// - in a live block of the library: that block is the endpoint's memory, and its bounds apply;
// - in memory that the library manages, but in no live block: INVALID_ARGUMENT;
// - in no memory of the library: the memory is the caller's. For a copy it is plain host memory,
//   and the driver is not queried; for work of a device see `target_of`.

#include "backend/queue.hpp"
#include "c/common.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus::c {

// Returns the endpoint of the `nbytes` bytes that begin at `raw`. Errors: OUT_OF_RANGE,
// INVALID_ARGUMENT, and those of `Buffer::at`.
[[nodiscard]] Result<Endpoint> endpoint_of(const isthmus_endpoint_t& raw, std::size_t nbytes,
                                           bool writes);

// The same for `nbytes` bytes that begin `preceding_bytes` before `raw`, which lies within them.
[[nodiscard]] Result<Endpoint> endpoint_around(const isthmus_endpoint_t& raw,
                                               std::size_t preceding_bytes, std::size_t nbytes,
                                               bool writes);

// The work of a device on memory: a fill, which writes the memory, or a hint (prefetch, advice).
enum class DeviceWork { fill, hint };

// Returns the endpoint for work of the device of `queue` on the memory at `endpoint`. `queue` is
// null if the caller passed none; the host then executes fills. An endpoint with an allocation
// record is returned unchanged. Other memory must have been allocated by another library and be
// known to the driver or, for a fill, be plain host memory that the device can access. Errors:
// INVALID_ARGUMENT for other addresses, OUT_OF_RANGE, WRONG_CONTEXT.
[[nodiscard]] Result<Endpoint> target_of(Endpoint endpoint, std::size_t nbytes, Queue* queue,
                                         DeviceWork work);

}  // namespace isthmus::c
