// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waiting on a 32-bit word with a timeout, which `std::atomic::wait` lacks. Thread-safe.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace isthmus::os {

using Clock = std::chrono::steady_clock;
// The time at which a wait ends; none: wait indefinitely.
using Deadline = std::optional<Clock::time_point>;

// Converts a timeout in nanoseconds as in the C ABI: a negative one means indefinitely.
[[nodiscard]] Deadline deadline_after(std::int64_t timeout_ns) noexcept;

// Blocks while `word` holds `expected`; may return early. Returns false once the deadline has
// passed.
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                const Deadline& deadline) noexcept;
void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace isthmus::os
