// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the kernel reports written pages correctly, and what that costs. The first call tests the
// kernel, once per process. Thread-safe.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus::tracking {

// Returns success if the kernel reports written pages correctly, else an error with the reason.
// Always fails in a forked child.
[[nodiscard]] Result<void> pages_are_reported();
// Cost of the write faults if every small page of a huge page is written, in units of one copy of
// the huge page to a device (38 us, H100). Measured by the test of the kernel; at least 1.
[[nodiscard]] std::size_t copies_of_dense_writes();
// Returns the number of bytes that the kernel reported in the test for a write of one byte: those
// of a huge page if it had one. 0 if it does not report written pages.
[[nodiscard]] std::size_t reported_granule();

}  // namespace isthmus::tracking
