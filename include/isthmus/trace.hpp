// SPDX-License-Identifier: Apache-2.0
// A trace is a recorded sequence of allocations and frees that is replayed on a memory resource.
// Use it to compare the time and the held memory of several resources, without running the program
// again.
//
//   std::vector<isthmus::trace_event> events = ...;
//   std::vector<isthmus::trace_sample> samples(events.size());
//   const auto result = isthmus::replay(pool, std::array{queue}, events, samples);
//
// Cost: that of the allocations; with samples also, for each event, two clock reads and one query
// of the memory that the resource holds. Thread-safe. replay() blocks its thread.
#pragma once

#include <isthmus/resource.hpp>

#include <chrono>
#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

// An allocation or free: `nbytes`, `id`, `queue` and `action`, see isthmus_trace_event_t.
using trace_event = isthmus_trace_event_t;
// The state after an event: `held_bytes` and `ns`, see isthmus_trace_sample_t.
using trace_sample = isthmus_trace_sample_t;

// Totals of a replay.
struct replay_result {
  std::chrono::nanoseconds time{};  // all events together
  std::uint64_t peak_held = 0;      // peak of the samples, in bytes; 0 without samples
  std::uint64_t maps = 0;           // how often the driver provided or mapped memory
  std::uint64_t unmaps = 0;  // how often memory was returned or unmapped, up to the last event
};

// Replays `events` in order. `samples` has one entry per event, or is empty: then the clock is not
// read between events. Blocks that are live after the last event are freed. Throws
// invalid_argument, with the number of the event, for an impossible sequence, before anything is
// replayed; wrong_context; and the errors of allocations.
inline replay_result replay(const isthmus::resource& resource, std::span<const queue> queues,
                            std::span<const trace_event> events,
                            std::span<trace_sample> samples = {}) {
  if (!samples.empty() && samples.size() != events.size()) {
    raise(status::invalid_argument, "replay: " + std::to_string(samples.size()) +
                                        " samples do not match " + std::to_string(events.size()) +
                                        " events: pass one sample per event, or none");
  }
  std::vector<isthmus_queue_t*> raw_queues;
  for (const queue& member : queues) raw_queues.push_back(member.require());
  isthmus_replay_result_t result{};
  result.struct_size = sizeof result;
  detail::check(isthmus_resource_replay(resource.require(), raw_queues.data(), raw_queues.size(),
                                        events.data(), events.size(),
                                        samples.empty() ? nullptr : samples.data(), &result));
  return {std::chrono::nanoseconds(result.ns), result.peak_held_bytes, result.maps, result.unmaps};
}

}  // namespace v1
}  // namespace isthmus
