// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers that increase with time. Obtaining one takes about a nanosecond. The numbers of one
// thread increase; those of different threads may be equal. A thread publishes its numbers before
// they exceed the published one by more than about 16. So the next numbers of two threads differ by
// no more than that. Thread-safe. Relaxed accesses suffice in `next_order`, as the numbers order no
// other memory.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/tls.hpp"

namespace isthmus {

namespace detail {
inline constexpr std::uint64_t k_max_difference = 16;
inline constinit std::atomic<std::uint64_t> published_order{0};
ISTHMUS_TLS_MODEL inline thread_local constinit std::uint64_t thread_order = 0;
}  // namespace detail

[[nodiscard]] inline std::uint64_t next_order() noexcept {
  auto published = detail::published_order.load(std::memory_order_relaxed);
  const auto next = std::max(detail::thread_order, published) + 1;
  if (next >= published + detail::k_max_difference) [[unlikely]] {
    // Never lowers the published number: has no effect if another thread has raised it meanwhile.
    detail::published_order.compare_exchange_strong(published, next, std::memory_order_relaxed);
  }
  detail::thread_order = next;
  return next;
}

// A number above all that were issued so far, and above the results of earlier calls. Calls of
// `next_order` that happen after this one return numbers above it.
[[nodiscard]] inline std::uint64_t order_above_all() noexcept {
  constexpr auto k_increment = 4 * detail::k_max_difference;
  return detail::published_order.fetch_add(k_increment, std::memory_order_acq_rel) + k_increment;
}

}  // namespace isthmus
