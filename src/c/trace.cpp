// SPDX-License-Identifier: Apache-2.0
// Replay of recorded allocations.

#include "c/common.hpp"
#include "os/process.hpp"
#include "trace/replay.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<std::vector<Queue*>> queues_of(isthmus_queue_t* const* given, std::size_t count,
                                      const MemoryResource& resource) {
  std::vector<Queue*> found;
  for (std::size_t each = 0; each < count; ++each) {
    if (given[each] == nullptr) {
      return is_null("a queue");
    }
    found.push_back(object(given[each]));
    if (found.back()->context().key() != resource.context().key()) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "queue {} belongs to another context than the memory resource", each);
    }
  }
  return found;
}

}  // namespace

isthmus_status_t isthmus_resource_replay(isthmus_resource_t* resource,
                                         isthmus_queue_t* const* queues, size_t queue_count,
                                         const isthmus_trace_event_t* events, size_t event_count,
                                         isthmus_trace_sample_t* samples,
                                         isthmus_replay_result_t* result) noexcept {
  return guarded([&]() -> isthmus::Result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(result);
    if (queue_count != 0) {
      ISTHMUS_NEEDS(queues);
    }
    if (event_count != 0) {
      ISTHMUS_NEEDS(events);
    }
    if (result->struct_size < sizeof *result) {
      return is_too_small("result", result->struct_size, sizeof *result);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto on = queues_of(queues, queue_count, *object(resource));
    ISTHMUS_TRY(on);
    auto played = replay(*object(resource), *on, {events, event_count},
                         {samples, samples == nullptr ? 0 : event_count});
    ISTHMUS_TRY(played);
    result->ns = played->ns;
    result->peak_held_bytes = played->peak_held_bytes;
    result->maps = played->maps;
    result->unmaps = played->unmaps;
    return {};
  });
}
