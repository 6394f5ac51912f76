// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses how writes are found if the request does not name a mechanism: from the size, the
// environment variable ISTHMUS_TRACKING, `force`, and a test of the kernel that runs once per
// process. Thread-safe.

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Below this size a query of the kernel takes longer than comparing or copying all of the memory.
inline constexpr std::size_t k_min_paged_bytes = std::size_t{64} << 10;

// Success if the kernel reports written pages correctly, else the reason why it does not. The first
// call tests the kernel. Always fails in a forked child.
[[nodiscard]] Result<void> pages_are_reported();
// Cost of the kernel's faults when every small page of a huge page is written, in units of one copy
// of that huge page to a device (38 us, H100). Measured by that test; at least 1.
[[nodiscard]] std::size_t copies_of_dense_writes();
// The mechanism for memory of this size: always `bytes` below `k_min_paged_bytes`. UNSUPPORTED or
// INVALID_ARGUMENT if ISTHMUS_TRACKING or `force` names one that cannot be used.
[[nodiscard]] Result<Means> means_for(std::size_t nbytes);
// Parses a value of ISTHMUS_TRACKING. NULL or empty: no mechanism. INVALID_ARGUMENT for an unknown
// one.
[[nodiscard]] Result<std::optional<Means>> parse_means(const char* text);

}  // namespace isthmus::tracking
