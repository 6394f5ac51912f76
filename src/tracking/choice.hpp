// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the tracking mechanism of requests that do not name one. The choice depends on the size,
// the environment variable ISTHMUS_TRACKING, `force`, and a test of the kernel that runs once per
// process. Thread-safe.

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Below this size a query of the kernel takes longer than comparing or copying the complete memory.
inline constexpr std::size_t k_min_paged_bytes = std::size_t{64} << 10;

// Returns success if the kernel reports written pages correctly, else an error with the reason. The
// first call tests the kernel. Always fails in a forked child.
[[nodiscard]] Result<void> pages_are_reported();
// Cost of the write faults if every small page of a huge page is written, in units of one copy of
// the huge page to a device (38 us, H100). Measured by the test of the kernel; at least 1.
[[nodiscard]] std::size_t copies_of_dense_writes();
// Returns the mechanism for memory of `nbytes` bytes: always `bytes` below `k_min_paged_bytes`.
// INVALID_ARGUMENT if ISTHMUS_TRACKING is invalid; UNSUPPORTED if it or `force` chose a mechanism
// that is not available.
[[nodiscard]] Result<TrackingMechanism> mechanism_for(std::size_t nbytes);
// Parses a value of ISTHMUS_TRACKING. Returns no mechanism for null or an empty string.
// INVALID_ARGUMENT for an unknown value.
[[nodiscard]] Result<std::optional<TrackingMechanism>> parse_mechanism(const char* text);

}  // namespace isthmus::tracking
