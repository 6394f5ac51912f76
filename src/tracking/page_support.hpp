// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the kernel reports written pages correctly, and what that costs. The first call tests the
// kernel, once per process. Thread-safe.

#include <chrono>
#include <cstddef>

#include "core/status.hpp"

namespace isthmus::tracking {

// Returns success if the kernel reports written pages correctly, else an error with the reason.
// Always fails in a forked child.
[[nodiscard]] Result<void> pages_are_reported();
// Time of a write fault of one small page in an array that exceeds the caches. Derived from a
// measurement by the test of the kernel.
[[nodiscard]] std::chrono::nanoseconds small_fault_time();
// Returns the number of bytes that the kernel reported in the test for a write of one byte: those
// of a huge page if it had one. 0 if it does not report written pages.
[[nodiscard]] std::size_t reported_granule();

}  // namespace isthmus::tracking
