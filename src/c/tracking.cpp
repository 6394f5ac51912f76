// SPDX-License-Identifier: Apache-2.0
// Tags, and the allocation tracker.

#include <algorithm>
#include <cstring>

#include "c/common.hpp"
#include "memory/base/tags.hpp"
#include "memory/resources/tracking_resource.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<TrackingResource*> tracker_of(isthmus_resource_t* resource) {
  auto* tracker = dynamic_cast<TrackingResource*>(object(resource));
  if (tracker == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "this resource does not record allocations: put an allocation tracker over it");
  }
  return tracker;
}

}  // namespace

isthmus_status_t isthmus_tag_find(const char* name, const char** tag) noexcept {
  return driver_entry(ISTHMUS_NEEDS(name, tag),
                      [&]() -> Result<void> { return return_value(tag_of(name), tag); });
}

const char* isthmus_tag_swap(const char* tag) noexcept { return swap_tag(tag); }

isthmus_status_t isthmus_resource_allocation_tracker(isthmus_resource_t* upstream, uint32_t frames,
                                                     isthmus_stack_function_t function,
                                                     isthmus_owner_t raw_owner,
                                                     isthmus_resource_t** resource) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    if (frames > TrackingResource::k_max_frames) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} stack frames are too many: the limit is {}",
                  frames, TrackingResource::k_max_frames);
    }
    TrackingResource::Options options{frames, function, std::move(owner)};
    auto tracker = make_ref<TrackingResource>(*object(upstream), std::move(options));
    return return_handle(Result<Ref<MemoryResource>>{std::move(tracker)}, resource);
  });
}

isthmus_status_t isthmus_allocation_tracker_visit(isthmus_resource_t* resource,
                                                  isthmus_tracked_allocation_function_t function,
                                                  void* user_data) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(resource, function), [&]() -> Result<void> {
    auto tracker = tracker_of(resource);
    ISTHMUS_TRY(tracker);
    for (const auto& block : (*tracker)->live()) {
      const auto* stack = TrackingResource::stack_of(block);
      const auto lines = stack != nullptr ? stack->describe() : std::string{};
      const isthmus_tracked_allocation_t record{sizeof record, const_cast<void*>(block.pointer),
                                                block.nbytes,  block.queue,
                                                block.order,   block.thread,
                                                block.tag,     lines.c_str()};
      function(user_data, &record);
    }
    return {};
  });
}

isthmus_status_t isthmus_allocation_tracker_usage(isthmus_resource_t* resource,
                                                  isthmus_tag_usage_function_t function,
                                                  void* user_data) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(resource, function), [&]() -> Result<void> {
    auto tracker = tracker_of(resource);
    ISTHMUS_TRY(tracker);
    for (const auto& usage : (*tracker)->usage_by_tag()) {
      isthmus_statistics_info_t counts{};
      counts.struct_size = sizeof counts;
      write_counts(usage.counts, counts);
      function(user_data, usage.tag, &counts);
    }
    return {};
  });
}

isthmus_status_t isthmus_allocation_tracker_report(isthmus_resource_t* resource, char* text,
                                                   size_t capacity, size_t* length) noexcept {
  return driver_entry_after_releases(ISTHMUS_NEEDS(resource, length), [&]() -> Result<void> {
    ISTHMUS_TRY(check_array(text, "text", capacity));
    auto tracker = tracker_of(resource);
    ISTHMUS_TRY(tracker);
    const auto report = (*tracker)->report();
    if (capacity != 0) {
      const auto count = std::min(capacity - 1, report.size());
      std::memcpy(text, report.data(), count);
      text[count] = 0;
    }
    *length = report.size();
    return {};
  });
}

isthmus_status_t isthmus_allocation_tracker_reset(isthmus_resource_t* resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto tracker = tracker_of(resource);
    ISTHMUS_TRY(tracker);
    (*tracker)->reset();
    return {};
  });
}
