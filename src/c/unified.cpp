// SPDX-License-Identifier: Apache-2.0
// Unified buffers.

#include <algorithm>

#include "c/common.hpp"
#include "memory/base/current_resources.hpp"
#include "os/process.hpp"
#include "tracking/choice.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

using tracking::TrackingMechanism;

Result<std::optional<TrackingMechanism>> mechanism_of(isthmus_dirty_tracking_t mechanism_code) {
  switch (mechanism_code) {
    case ISTHMUS_DIRTY_TRACKING_DEFAULT: return std::optional<TrackingMechanism>{};
    case ISTHMUS_DIRTY_TRACKING_PAGES: return std::optional{TrackingMechanism::pages};
    case ISTHMUS_DIRTY_TRACKING_BYTES: return std::optional{TrackingMechanism::bytes};
    case ISTHMUS_DIRTY_TRACKING_HASHES: return std::optional{TrackingMechanism::hashes};
    default:
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "{} is not a tracking mechanism: use one of ISTHMUS_DIRTY_TRACKING_*",
                  mechanism_code);
  }
}

isthmus_dirty_tracking_t code_of(TrackingMechanism mechanism) noexcept {
  switch (mechanism) {
    case TrackingMechanism::pages: return ISTHMUS_DIRTY_TRACKING_PAGES;
    case TrackingMechanism::bytes: return ISTHMUS_DIRTY_TRACKING_BYTES;
    case TrackingMechanism::hashes: return ISTHMUS_DIRTY_TRACKING_HASHES;
  }
  return ISTHMUS_DIRTY_TRACKING_DEFAULT;
}

Result<Winner> winner_of(isthmus_winner_t winner) {
  if (winner < ISTHMUS_WINNER_NONE || winner > ISTHMUS_WINNER_DEVICE) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is not a winner: use one of ISTHMUS_WINNER_*",
                winner);
  }
  return static_cast<Winner>(winner);
}

Result<UnifiedRequest> request_of(std::size_t nbytes, const isthmus_unified_options_t* options) {
  UnifiedRequest request;
  request.nbytes = nbytes;
  if (options == nullptr) {
    return request;
  }
  ISTHMUS_TRY(check_struct_size(*options, "options"));
  auto mechanism = mechanism_of(options->tracking);
  ISTHMUS_TRY(mechanism);
  auto winner = winner_of(options->on_conflict);
  ISTHMUS_TRY(winner);
  request.pinned = options->pinned != 0;
  request.separate = options->separate != 0;
  request.on_conflict = *winner;
  request.mechanism = *mechanism;
  request.element_bytes = std::max<std::size_t>(1, options->element_bytes);
  if (options->by_page != 0) {
    request.granularity = tracking::Granularity::page;
  }
  return request;
}

// Null: the default pool.
Ref<MemoryResource> resource_or_current(const isthmus_unified_options_t* options,
                                        const Queue& queue) noexcept {
  return options != nullptr && options->resource != nullptr
             ? Ref{object(options->resource)}
             : current_resource(ISTHMUS_KIND_DEVICE, queue);
}

Result<ByteRange> range_of(std::size_t offset, std::size_t nbytes) {
  if (nbytes > SIZE_MAX - offset) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from offset {} run past the end of the address space", nbytes, offset);
  }
  return ByteRange{offset, offset + nbytes};
}

// As `entry`: calls `call(range)` with the caller's range.
template <class Call>
isthmus_status_t range_entry(const RequiredPointers& required, std::size_t offset,
                             std::size_t nbytes, Call&& call) noexcept {
  return entry(required, [&]() -> Result<void> {
    auto range = range_of(offset, nbytes);
    ISTHMUS_TRY(range);
    return call(*range);
  });
}

// As `driver_entry`: calls `call(range)` with the caller's range.
template <class Call>
isthmus_status_t driver_range_entry(const RequiredPointers& required, std::size_t offset,
                                    std::size_t nbytes, Call&& call) noexcept {
  return driver_entry(required, [&]() -> Result<void> {
    auto range = range_of(offset, nbytes);
    ISTHMUS_TRY(range);
    return call(*range);
  });
}

Waiting waiting_of(isthmus_event_t** event) noexcept {
  return event == nullptr ? Waiting::this_call : Waiting::next_use;
}

}  // namespace

isthmus_status_t isthmus_unified_create(size_t nbytes, isthmus_queue_t* queue,
                                        const isthmus_unified_options_t* options,
                                        isthmus_unified_t** unified) noexcept {
  return driver_entry(ISTHMUS_NEEDS(unified), [&]() -> Result<void> {
    auto request = request_of(nbytes, options);
    ISTHMUS_TRY(request);
    auto actual_queue = queue_or_default(queue);
    ISTHMUS_TRY(actual_queue);
    const auto resource = resource_or_current(options, **actual_queue);
    return return_handle(UnifiedBuffer::create(**actual_queue, *request, resource.get()), unified);
  });
}

void isthmus_unified_retain(isthmus_unified_t* unified) noexcept {
  if (unified != nullptr) {
    object(unified)->retain();
  }
}

void isthmus_unified_release(isthmus_unified_t* unified) noexcept {
  if (unified != nullptr && !os::is_forked_child()) {
    object(unified)->release();
  }
}

void isthmus_unified_free(isthmus_unified_t* unified) noexcept {
  if (unified != nullptr) {
    object(unified)->free();
  }
}

isthmus_status_t isthmus_unified_info(isthmus_unified_t* unified,
                                      isthmus_unified_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(unified, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    auto facts = object(unified)->facts();
    ISTHMUS_TRY(facts);
    info->nbytes = object(unified)->nbytes();
    info->state = static_cast<isthmus_unified_state_t>(facts->state);
    info->tracking =
        facts->granule != 0 ? code_of(facts->mechanism) : ISTHMUS_DIRTY_TRACKING_DEFAULT;
    info->granule = facts->granule;
    info->pinned = facts->is_pinned ? 1 : 0;
    info->one_memory = facts->is_one_memory ? 1 : 0;
    info->queue = handle(&object(unified)->queue());
    info->host_views = facts->host_views;
    info->bytes_to_device = facts->counts.bytes_to_device;
    info->bytes_to_host = facts->counts.bytes_to_host;
    info->copies = facts->counts.copies;
    return {};
  });
}

isthmus_status_t isthmus_unified_dirty_ranges(isthmus_unified_t* unified, int of_device,
                                              isthmus_byte_range_t* ranges, size_t capacity,
                                              size_t* count) noexcept {
  return entry(ISTHMUS_NEEDS(unified, count), [&]() -> Result<void> {
    ISTHMUS_TRY(check_array(ranges, "ranges", capacity));
    auto dirty = object(unified)->dirty_ranges();
    ISTHMUS_TRY(dirty);
    const auto& side_ranges = of_device != 0 ? dirty->device : dirty->host;
    const auto copied = std::min(capacity, side_ranges.size());
    std::transform(
        side_ranges.begin(), side_ranges.begin() + static_cast<std::ptrdiff_t>(copied), ranges,
        [](const ByteRange& range) { return isthmus_byte_range_t{range.begin, range.end}; });
    *count = side_ranges.size();
    return {};
  });
}

isthmus_status_t isthmus_unified_host(isthmus_unified_t* unified, size_t offset, size_t nbytes,
                                      void** pointer) noexcept {
  return range_entry(ISTHMUS_NEEDS(unified, pointer), offset, nbytes,
                     [&](const ByteRange& range) -> Result<void> {
                       return return_value(object(unified)->begin_host_view(range), pointer);
                     });
}

void isthmus_unified_end_host(isthmus_unified_t* unified) noexcept {
  if (unified != nullptr) {
    object(unified)->end_host_view();
  }
}

isthmus_status_t isthmus_unified_read_host(isthmus_unified_t* unified, size_t offset, size_t nbytes,
                                           const void** pointer) noexcept {
  return range_entry(ISTHMUS_NEEDS(unified, pointer), offset, nbytes,
                     [&](const ByteRange& range) -> Result<void> {
                       return return_value(object(unified)->read_host(range), pointer);
                     });
}

isthmus_status_t isthmus_unified_begin_write(isthmus_unified_t* unified, size_t offset,
                                             size_t nbytes, int keep_contents,
                                             void** pointer) noexcept {
  return driver_range_entry(
      ISTHMUS_NEEDS(unified, pointer), offset, nbytes, [&](const ByteRange& range) -> Result<void> {
        return return_value(object(unified)->begin_host_write(range, keep_contents != 0), pointer);
      });
}

isthmus_status_t isthmus_unified_end_write(isthmus_unified_t* unified, size_t offset, size_t nbytes,
                                           int keep_contents) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes, [&](const ByteRange& range) {
    return object(unified)->end_host_write(range, keep_contents != 0);
  });
}

isthmus_status_t isthmus_unified_device(isthmus_unified_t* unified, isthmus_queue_t* queue,
                                        size_t offset, size_t nbytes,
                                        isthmus_buffer_t** device) noexcept {
  return driver_range_entry(
      ISTHMUS_NEEDS(unified, device), offset, nbytes, [&](const ByteRange& range) -> Result<void> {
        return return_handle(object(unified)->device({range, object(queue)}), device);
      });
}

isthmus_status_t isthmus_unified_begin_device_write(isthmus_unified_t* unified,
                                                    isthmus_queue_t* queue, size_t offset,
                                                    size_t nbytes,
                                                    isthmus_buffer_t** device) noexcept {
  return driver_range_entry(
      ISTHMUS_NEEDS(unified, device), offset, nbytes, [&](const ByteRange& range) -> Result<void> {
        return return_handle(object(unified)->begin_device_write({range, object(queue)}), device);
      });
}

isthmus_status_t isthmus_unified_to_device(isthmus_unified_t* unified, isthmus_queue_t* queue,
                                           size_t offset, size_t nbytes,
                                           isthmus_event_t** event) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes, [&](const ByteRange& range) {
    return return_event(object(unified)->to_device({range, object(queue), waiting_of(event)}),
                        event);
  });
}

isthmus_status_t isthmus_unified_to_host(isthmus_unified_t* unified, isthmus_queue_t* queue,
                                         size_t offset, size_t nbytes,
                                         isthmus_event_t** event) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes, [&](const ByteRange& range) {
    return return_event(object(unified)->to_host({range, object(queue), waiting_of(event)}), event);
  });
}

isthmus_status_t isthmus_unified_arrival(isthmus_unified_t* unified, isthmus_queue_t* queue,
                                         size_t offset, size_t nbytes, isthmus_arrival_t mode,
                                         isthmus_event_t** event) noexcept {
  return range_entry(
      ISTHMUS_NEEDS(unified, event), offset, nbytes, [&](const ByteRange& range) -> Result<void> {
        if (mode < ISTHMUS_ARRIVAL_BEGUN || mode > ISTHMUS_ARRIVAL_WORK) {
          return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                      "{} is not an arrival mode: use one of ISTHMUS_ARRIVAL_*", mode);
        }
        return return_event(
            object(unified)->arrival({range, object(queue)}, static_cast<BeforeArrival>(mode)),
            event);
      });
}

isthmus_status_t isthmus_unified_synchronize(isthmus_unified_t* const* unified, size_t count,
                                             isthmus_queue_t* queue) noexcept {
  return driver_entry({}, [&]() -> Result<void> {
    ISTHMUS_TRY(check_array(unified, "unified", count));
    std::vector<UnifiedBuffer*> buffers(count);
    for (size_t i = 0; i < count; ++i) {
      if (unified[i] == nullptr) {
        return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "unified buffer {} of {} is NULL", i, count);
      }
      buffers[i] = object(unified[i]);
    }
    return UnifiedBuffer::to_device(buffers, object(queue));
  });
}

isthmus_status_t isthmus_unified_mark_host(isthmus_unified_t* unified, size_t offset,
                                           size_t nbytes) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes, [&](const ByteRange& range) {
    return object(unified)->mark_host(range);
  });
}

isthmus_status_t isthmus_unified_mark_device(isthmus_unified_t* unified, size_t offset,
                                             size_t nbytes) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes, [&](const ByteRange& range) {
    return object(unified)->mark_device(range);
  });
}

isthmus_status_t isthmus_unified_resolve(isthmus_unified_t* unified, isthmus_winner_t winner,
                                         size_t offset, size_t nbytes) noexcept {
  return driver_range_entry(ISTHMUS_NEEDS(unified), offset, nbytes,
                            [&](const ByteRange& range) -> Result<void> {
                              auto side = winner_of(winner);
                              ISTHMUS_TRY(side);
                              return object(unified)->resolve(*side, range);
                            });
}

isthmus_status_t isthmus_unified_forget(isthmus_unified_t* unified) noexcept {
  return driver_entry(ISTHMUS_NEEDS(unified),
                      [&]() -> Result<void> { return object(unified)->forget(); });
}

isthmus_status_t isthmus_dirty_tracking_info(isthmus_dirty_tracking_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    // Never freed, as the header promises for `reason`.
    static const auto& initial = *new const tracking::ActiveTracking{tracking::active_mechanism()};
    const auto current = tracking::active_mechanism();
    info->mechanism = code_of(current.large);
    info->granule = current.granule;
    info->reason = initial.reason.c_str();
    return {};
  });
}

isthmus_status_t isthmus_dirty_tracking_force(isthmus_dirty_tracking_t tracking_code) noexcept {
  return entry({}, [&]() -> Result<void> {
    auto mechanism = mechanism_of(tracking_code);
    ISTHMUS_TRY(mechanism);
    return tracking::force(*mechanism);
  });
}
