// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replays recorded allocations and frees on a memory resource. Thread-safe; the results include the
// effects of other threads that use the resource meanwhile.

#include <span>

#include "memory/base/memory_resource.hpp"

namespace isthmus {

using TraceEvent = isthmus_trace_event_t;
using TraceSample = isthmus_trace_sample_t;

struct ReplayResult {
  std::uint64_t ns = 0;
  std::uint64_t peak_held_bytes = 0;
  std::uint64_t maps = 0;
  std::uint64_t unmaps = 0;
};

// As `isthmus_resource_replay`. `samples` is empty or has an entry for each event.
[[nodiscard]] Result<ReplayResult> replay(MemoryResource& resource, std::span<Queue* const> queues,
                                          std::span<const TraceEvent> events,
                                          std::span<TraceSample> samples);

}  // namespace isthmus
