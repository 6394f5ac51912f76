// SPDX-License-Identifier: Apache-2.0
#pragma once
// The id of the calling thread, as the system's tools show it.

#include <cstdint>

#include "core/tls.hpp"

namespace isthmus::os {

namespace detail {
ISTHMUS_TLS_MODEL extern thread_local constinit std::uint64_t cached_thread_id;
[[nodiscard]] std::uint64_t query_thread_id() noexcept;
}  // namespace detail

// Makes one system call per thread.
[[nodiscard]] inline std::uint64_t thread_id() noexcept {
  const auto cached = detail::cached_thread_id;
  return cached != 0 ? cached : detail::query_thread_id();
}

}  // namespace isthmus::os
