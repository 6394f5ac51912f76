// A trace: a recorded sequence of allocations and frees, played against a memory resource. Choose
// it to see what a program's allocations cost and hold out of one resource or another, without the
// program.
//
//   std::vector<isthmus::trace_event> events = ...;
//   std::vector<isthmus::trace_sample> samples(events.size());
//   const auto seen = isthmus::replay(pool, std::array{queue}, events, samples);
//
// Cost: that of the allocations, and with samples of two looks at the clock and one at what the
// resource holds for each event. Threads: any; replay blocks its own.
#pragma once

#include <isthmus/resource.hpp>

#include <chrono>
#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

// `nbytes`, `id`, `queue` and `action`: isthmus_trace_event_t says what they are.
using trace_event = isthmus_trace_event_t;
// `held_bytes` and `ns`, right after an event.
using trace_sample = isthmus_trace_sample_t;

struct replay_result {
  std::chrono::nanoseconds time{};  // all events together
  std::uint64_t peak_held = 0;      // bytes of the driver's; 0 without samples
  std::uint64_t maps = 0;           // times that the driver gave memory
  std::uint64_t unmaps = 0;         // and got some back, up to the last event
};

// Plays `events` in order; `samples` is empty, then no clock is read between them, or has one for
// each. Throws invalid_argument with the number of an event that cannot have happened, before
// anything is played; wrong_context; what an allocation throws. What lives at the end is freed.
inline replay_result replay(const resource& from, std::span<const queue> queues,
                            std::span<const trace_event> events,
                            std::span<trace_sample> samples = {}) {
  if (!samples.empty() && samples.size() != events.size()) {
    raise(status::invalid_argument, "replay: samples must be none, or one for each event");
  }
  std::vector<isthmus_queue_t*> on;
  for (const queue& one : queues) on.push_back(one.get());
  isthmus_replay_result_t result{};
  result.struct_size = sizeof result;
  detail::check(isthmus_resource_replay(from.get(), on.data(), on.size(), events.data(),
                                        events.size(), samples.empty() ? nullptr : samples.data(),
                                        &result));
  return {std::chrono::nanoseconds(result.ns), result.peak_held_bytes, result.maps, result.unmaps};
}

}  // namespace v1
}  // namespace isthmus
