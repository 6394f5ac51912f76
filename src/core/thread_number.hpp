// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small numbers for threads, as indices of tables with an entry per thread. No two living threads
// have the same number; the number of a thread that has ended is reused. Thread-safe.

#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

// All numbers are below this.
inline constexpr std::uint32_t k_thread_numbers = 64;

namespace detail {
ISTHMUS_TLS_MODEL extern thread_local constinit std::uint32_t cached_thread_number;
}

// The calling thread's number. 0 if it has not claimed one. `k_thread_numbers` if it cannot have
// one: all were in use when it tried to claim one, or it is ending.
[[nodiscard]] inline std::uint32_t thread_number() noexcept { return detail::cached_thread_number; }
// Claims a number unless the thread has one. Everything that the previous thread with that number
// did is visible. Also returns `k_thread_numbers`, for this call only, if the host has no memory to
// register the thread's end.
[[nodiscard]] std::uint32_t claim_thread_number() noexcept;

}  // namespace isthmus
