// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the caller of a unified buffer requests.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/queue.hpp"
#include "core/range_set.hpp"
#include "tracking/mechanism.hpp"
#include "unified/state.hpp"

namespace isthmus {

struct UnifiedRequest {
  std::size_t nbytes = 0;
  bool pinned = false;    // the host copy is registered with the driver
  bool separate = false;  // two copies even if one memory would suffice
  Winner on_conflict = Winner::none;
  tracking::Granularity granularity = tracking::Granularity::automatic;
  std::optional<tracking::TrackingMechanism> mechanism;
  std::size_t element_bytes = 1;  // detected writes are extended to whole elements
};

// What waits until an upload has read its source or a download has written the host copy: the call
// itself, the caller through the event, or the next use of the copy.
enum class Waiting : std::uint8_t { this_call, by_caller, next_use };

// What the event of `arrival` covers besides downloads in flight.
enum class BeforeArrival {
  nothing,
  fetch,  // begins downloads that would wait for work on the device, and covers them
  work,   // covers the work on the device copy and on the queue
};

struct SyncRequest {
  ByteRange range;
  Queue* queue = nullptr;  // null: the buffer's own queue
  Waiting waiting = Waiting::this_call;
};

}  // namespace isthmus
