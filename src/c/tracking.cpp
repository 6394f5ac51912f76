// SPDX-License-Identifier: Apache-2.0
// Tags, and resources that record live blocks.

#include <algorithm>
#include <cstring>

#include "c/common.hpp"
#include "memory/adaptors/tracking_resource.hpp"
#include "memory/deferred_release.hpp"
#include "memory/tags.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

Result<TrackingResource*> tracking_of(isthmus_resource_t* resource) {
  ISTHMUS_NEEDS(resource);
  if (os::is_forked_child()) {
    return refuse_child();
  }
  auto* found = dynamic_cast<TrackingResource*>(object(resource));
  if (found == nullptr) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "this resource does not record allocations: create one with isthmus_resource_tracking");
  }
  return found;
}

}  // namespace

isthmus_status_t isthmus_tag_find(const char* name, const char** tag) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(name);
    ISTHMUS_NEEDS(tag);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto found = tag_of(name);
    ISTHMUS_TRY(found);
    *tag = *found;
    return {};
  });
}

const char* isthmus_tag_swap(const char* tag) noexcept { return swap_tag(tag); }

isthmus_status_t isthmus_resource_tracking(isthmus_resource_t* upstream, uint32_t frames,
                                           isthmus_stack_function_t function, isthmus_owner_t keep,
                                           isthmus_resource_t** resource) noexcept {
  Owner kept{keep};
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    if (frames > TrackingResource::k_most_frames) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} stack frames are too many: the limit is {}",
                  frames, TrackingResource::k_most_frames);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    TrackingResource::Options how{frames, function, std::move(kept)};
    auto made = make_ref<TrackingResource>(*object(upstream), std::move(how));
    return give(Result<Ref<MemoryResource>>{std::move(made)}, resource);
  });
}

isthmus_status_t isthmus_tracking_visit(isthmus_resource_t* resource,
                                        isthmus_tracked_function_t function, void* given) noexcept {
  return guarded([&]() -> Result<void> {
    auto of = tracking_of(resource);
    ISTHMUS_TRY(of);
    release_on_demand();
    ISTHMUS_NEEDS(function);
    for (const auto& each : (*of)->live()) {
      const auto* stack = TrackingResource::stack_of(each);
      const auto lines = stack != nullptr ? stack->describe() : std::string{};
      const isthmus_tracked_t told{sizeof told, const_cast<void*>(each.pointer),
                                   each.nbytes, each.queue,
                                   each.order,  each.thread,
                                   each.tag,    lines.c_str()};
      function(given, &told);
    }
    return {};
  });
}

isthmus_status_t isthmus_tracking_usage(isthmus_resource_t* resource,
                                        isthmus_tag_usage_function_t function,
                                        void* given) noexcept {
  return guarded([&]() -> Result<void> {
    auto of = tracking_of(resource);
    ISTHMUS_TRY(of);
    release_on_demand();
    ISTHMUS_NEEDS(function);
    for (const auto& each : (*of)->usage_by_tag()) {
      isthmus_statistics_t counts{};
      counts.struct_size = sizeof counts;
      write_counts(each.counts, counts);
      function(given, each.tag, &counts);
    }
    return {};
  });
}

isthmus_status_t isthmus_tracking_report(isthmus_resource_t* resource, char* text, size_t room,
                                         size_t* length) noexcept {
  return guarded([&]() -> Result<void> {
    auto of = tracking_of(resource);
    ISTHMUS_TRY(of);
    release_on_demand();
    ISTHMUS_NEEDS(length);
    if (room != 0) {
      ISTHMUS_NEEDS(text);
    }
    const auto whole = (*of)->report();
    if (room != 0) {
      const auto count = std::min(room - 1, whole.size());
      std::memcpy(text, whole.data(), count);
      text[count] = 0;
    }
    *length = whole.size();
    return {};
  });
}

isthmus_status_t isthmus_tracking_reset(isthmus_resource_t* resource) noexcept {
  return guarded([&]() -> Result<void> {
    auto of = tracking_of(resource);
    ISTHMUS_TRY(of);
    (*of)->reset();
    return {};
  });
}
