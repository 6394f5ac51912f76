// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooses the tracking mechanism of requests that do not name one. The choice depends on the size,
// the environment variable ISTHMUS_TRACKING, `force`, and on whether the kernel reports written
// pages (page_support.hpp). Thread-safe.

#include <cstddef>
#include <optional>
#include <string>

#include "core/status.hpp"
#include "tracking/mechanism.hpp"

namespace isthmus::tracking {

// Below this size a query of the kernel takes longer than comparing or copying the complete memory.
inline constexpr std::size_t k_min_paged_bytes = std::size_t{64} << 10;

// Returns the mechanism for memory of `nbytes` bytes: always `bytes` below `k_min_paged_bytes`.
// INVALID_ARGUMENT if ISTHMUS_TRACKING is invalid; UNSUPPORTED if it or `force` chose a mechanism
// that is not available.
[[nodiscard]] Result<TrackingMechanism> mechanism_for(std::size_t nbytes);

// The mechanism that this process uses for large memory, for `isthmus info`.
struct ActiveTracking {
  TrackingMechanism large = TrackingMechanism::pages;
  std::size_t granule = 0;  // bytes
  std::string reason;       // why `large` is not `pages`; empty if it is
};
[[nodiscard]] ActiveTracking active_mechanism();

// Sets the mechanism of the process for memory created after this call; none restores the choice of
// ISTHMUS_TRACKING, or the automatic choice if that is unset. UNSUPPORTED, with the reason, if the
// mechanism is not available.
[[nodiscard]] Result<void> force(std::optional<TrackingMechanism> mechanism);

}  // namespace isthmus::tracking
