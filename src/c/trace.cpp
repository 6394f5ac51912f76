// SPDX-License-Identifier: Apache-2.0
// Replay of recorded allocations.

#include "c/common.hpp"
#include "memory/resources/replay.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<std::vector<Queue*>> queues_of(isthmus_queue_t* const* queues, std::size_t count,
                                      const MemoryResource& resource) {
  std::vector<Queue*> result;
  for (std::size_t i = 0; i < count; ++i) {
    if (queues[i] == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "queue {} of {} is NULL", i, count);
    }
    result.push_back(object(queues[i]));
    if (result.back()->context().key() != resource.context().key()) {
      return fail(
          ISTHMUS_ERROR_WRONG_CONTEXT,
          "queue {} belongs to another context than the memory resource: use a queue of the "
          "resource's context",
          i);
    }
  }
  return result;
}

}  // namespace

isthmus_status_t isthmus_resource_replay(isthmus_resource_t* resource,
                                         isthmus_queue_t* const* queues, size_t queue_count,
                                         const isthmus_trace_event_t* events, size_t event_count,
                                         isthmus_trace_sample_t* samples,
                                         isthmus_replay_result_t* result) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource, result), [&]() -> isthmus::Result<void> {
    ISTHMUS_TRY(check_array(queues, "queues", queue_count));
    ISTHMUS_TRY(check_array(events, "events", event_count));
    ISTHMUS_TRY(check_struct_size(*result, "result"));
    auto replay_queues = queues_of(queues, queue_count, *object(resource));
    ISTHMUS_TRY(replay_queues);
    auto replay_result = replay(*object(resource), *replay_queues, {events, event_count},
                                {samples, samples == nullptr ? 0 : event_count});
    ISTHMUS_TRY(replay_result);
    result->ns = replay_result->ns;
    result->peak_held_bytes = replay_result->peak_held_bytes;
    result->maps = replay_result->maps;
    result->unmaps = replay_result->unmaps;
    return {};
  });
}
