// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replays recorded allocations and frees against a memory resource. Not thread-safe.

#include <span>

#include "memory/memory_resource.hpp"

namespace isthmus {

using trace_event = isthmus_trace_event_t;
using trace_sample = isthmus_trace_sample_t;

struct replay_result {
  std::uint64_t ns = 0;
  std::uint64_t peak_held_bytes = 0;
  std::uint64_t maps = 0;
  std::uint64_t unmaps = 0;
};

// As `isthmus_resource_replay`. `samples` is empty or has an entry for each event.
[[nodiscard]] result<replay_result> replay(memory_resource& from, std::span<queue* const> queues,
                                           std::span<const trace_event> events,
                                           std::span<trace_sample> samples);

}  // namespace isthmus
