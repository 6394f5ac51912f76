// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers that increase with time. Obtaining one takes about a nanosecond. The numbers of one
// thread are unique and increasing. A thread whose numbers are lower than another thread's catches
// up every few numbers. Thread-safe. Relaxed accesses suffice in `next_order`, as the numbers order
// no other memory.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

namespace detail {
inline constexpr std::uint64_t k_numbers_apart = 16;
inline constinit std::atomic<std::uint64_t> shared_order{0};
ISTHMUS_TLS_MODEL inline thread_local constinit std::uint64_t thread_order = 0;
}  // namespace detail

[[nodiscard]] inline std::uint64_t next_order() noexcept {
  auto current = detail::shared_order.load(std::memory_order_relaxed);
  const auto next = std::max(detail::thread_order, current) + 1;
  if (next >= current + detail::k_numbers_apart) [[unlikely]] {
    // Never lowers the shared number: has no effect if another thread has raised it meanwhile.
    detail::shared_order.compare_exchange_strong(current, next, std::memory_order_relaxed);
  }
  detail::thread_order = next;
  return next;
}

// A number above all that were issued so far, and above the results of earlier calls. Calls of
// `next_order` that happen after this one return numbers above it.
[[nodiscard]] inline std::uint64_t order_above_all() noexcept {
  constexpr auto k_increment = 4 * detail::k_numbers_apart;
  return detail::shared_order.fetch_add(k_increment, std::memory_order_acq_rel) + k_increment;
}

}  // namespace isthmus
