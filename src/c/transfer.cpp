// SPDX-License-Identifier: Apache-2.0
// Copies, fills, prefetch and advice.

#include "c/endpoints.hpp"
#include "c/operation.hpp"
#include "core/sizes.hpp"
#include "transfer/ranges.hpp"
#include "transfer/strided.hpp"

#include <algorithm>
#include <cstring>
#include <span>

using namespace isthmus;
using namespace isthmus::c;

namespace {

// One of the two sides of a range.
struct RangeSide {
  const char* name;
  size_t isthmus_range_t::*offset;
  bool writes;
};
constexpr RangeSide k_destination_side{"destination", &isthmus_range_t::destination_offset, true};
constexpr RangeSide k_source_side{"source", &isthmus_range_t::source_offset, false};

// Returns the endpoint of the `nbytes` bytes that begin `begin` bytes after `raw`.
Result<Endpoint> endpoint_at_offset(const isthmus_endpoint_t& raw, size_t begin, size_t nbytes,
                                    bool writes) {
  if (begin > SIZE_MAX - raw.offset) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "offset {} from {} runs past the end of the address space", begin, raw.offset);
  }
  return endpoint_of({raw.buffer, raw.pointer, raw.offset + begin}, nbytes, writes);
}

// Returns the endpoint of all ranges together. If a range exceeds the bounds, the error names that
// range.
Result<Endpoint> endpoint_of_ranges(const isthmus_endpoint_t& raw, size_t begin, size_t nbytes,
                                    std::span<const isthmus_range_t> ranges,
                                    const RangeSide& side) {
  auto endpoint = endpoint_at_offset(raw, begin, nbytes, side.writes);
  if (endpoint || endpoint.failure().code() != ISTHMUS_ERROR_OUT_OF_RANGE) {
    return endpoint;
  }
  for (size_t index = 0; index < ranges.size(); ++index) {
    const auto& range = ranges[index];
    if (range.nbytes == 0) {
      continue;
    }
    const auto range_endpoint =
        endpoint_at_offset(raw, range.*side.offset, range.nbytes, side.writes);
    if (!range_endpoint) {
      return fail(range_endpoint.failure().code(), "range {} does not lie within the {}: {}", index,
                  side.name, range_endpoint.failure().message());
    }
  }
  return endpoint;
}

Result<size_t> extent(size_t pitch, size_t width, size_t height, const char* side) {
  if (width > pitch && height > 1) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the {} pitch of {} bytes is less than the width of {}", side, pitch, width);
  }
  if (width == 0 || height == 0) {
    return size_t{0};
  }
  if (height > 1 && (height - 1) > (SIZE_MAX - width) / pitch) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "{} rows {} bytes apart exceed the address space",
                height, pitch);
  }
  return pitch * (height - 1) + width;
}

// Returns the number of bytes from the first byte to the end of the last; 0 if the block is empty.
Result<size_t> extent_nd(const StridedCopy& copy, Side side, const char* name) {
  size_t end = copy.width;
  for (size_t i = 0; i < copy.rank; ++i) {
    const auto stride = copy.dimensions[i].stride(side);
    const auto gaps = copy.dimensions[i].count - 1;
    if (stride != 0 && gaps > (SIZE_MAX - end) / stride) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} elements {} bytes apart in the {} exceed the address space", gaps + 1, stride,
                  name);
    }
    end += gaps * stride;
  }
  return end;
}

// Checks that each stride is at least the span of the dimensions inside it, so that no two elements
// overlap.
Result<void> check_nested(const StridedCopy& copy) {
  const auto sorted = simplified(copy, Side::destination);
  size_t inner_bytes = sorted.width;
  for (size_t i = sorted.rank; i-- > 0;) {
    const auto& dimension = sorted.dimensions[i];
    if (dimension.destination_stride < inner_bytes) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "elements overlap in the destination: a stride of {} bytes is less than the {} "
                  "bytes of the inner dimensions",
                  dimension.destination_stride, inner_bytes);
    }
    inner_bytes += (dimension.count - 1) * dimension.destination_stride;
  }
  return {};
}

// Returns the described block; an empty block has width 0 and no dimensions.
Result<StridedCopy> block_of(const size_t* destination_strides, const size_t* source_strides,
                             const size_t* shape, size_t dimensions, size_t item_bytes) {
  if (dimensions > StridedCopy::k_max_dimensions) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "an array cannot have {} dimensions: the limit is {}", dimensions,
                StridedCopy::k_max_dimensions);
  }
  StridedCopy block;
  block.width = item_bytes;
  for (size_t i = 0; i < dimensions; ++i) {
    block.append({shape[i], destination_strides[i], source_strides[i]});
  }
  const bool is_empty = item_bytes == 0 || std::count(shape, shape + dimensions, 0U) != 0;
  return is_empty ? StridedCopy{} : block;
}

Result<FillPattern> pattern_of(const void* bytes, size_t pattern_bytes, size_t nbytes) {
  FillPattern pattern;
  if (!is_power_of_two(pattern_bytes) || pattern_bytes > sizeof pattern.bytes) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a pattern cannot have {} bytes: use 1, 2, 4, 8 or 16", pattern_bytes);
  }
  if (nbytes % pattern_bytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} bytes are not a multiple of the pattern's {}",
                nbytes, pattern_bytes);
  }
  std::memcpy(pattern.bytes, bytes, pattern_bytes);
  pattern.nbytes = pattern_bytes;
  return pattern;
}

Result<Endpoint> target_at(const isthmus_endpoint_t& raw, size_t nbytes, isthmus_queue_t* queue,
                           DeviceWork work) {
  auto endpoint = endpoint_of(raw, nbytes, work == DeviceWork::fill);
  ISTHMUS_TRY(endpoint);
  return target_of(*std::move(endpoint), nbytes, object(queue), work);
}

}  // namespace

isthmus_status_t isthmus_copy(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
                              const isthmus_endpoint_t* source, size_t nbytes,
                              const isthmus_operation_t* operation,
                              isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(destination, source), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   auto destination_endpoint = endpoint_of(*destination, nbytes, true);
                   ISTHMUS_TRY(destination_endpoint);
                   auto source_endpoint = endpoint_of(*source, nbytes, false);
                   ISTHMUS_TRY(source_endpoint);
                   return copy(object(queue), *destination_endpoint, *source_endpoint, nbytes,
                               std::move(options));
                 });
}

isthmus_status_t isthmus_copy_2d(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
                                 size_t destination_pitch, const isthmus_endpoint_t* source,
                                 size_t source_pitch, size_t width, size_t height,
                                 const isthmus_operation_t* operation,
                                 isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(destination, source), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   auto destination_bytes = extent(destination_pitch, width, height, "destination");
                   ISTHMUS_TRY(destination_bytes);
                   auto source_bytes = extent(source_pitch, width, height, "source");
                   ISTHMUS_TRY(source_bytes);
                   auto destination_endpoint = endpoint_of(*destination, *destination_bytes, true);
                   ISTHMUS_TRY(destination_endpoint);
                   auto source_endpoint = endpoint_of(*source, *source_bytes, false);
                   ISTHMUS_TRY(source_endpoint);
                   return copy_2d(object(queue), *destination_endpoint, *source_endpoint,
                                  {destination_pitch, source_pitch, width, height},
                                  std::move(options));
                 });
}

isthmus_status_t isthmus_copy_ranges(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
                                     const isthmus_endpoint_t* source,
                                     const isthmus_range_t* ranges, size_t range_count,
                                     const isthmus_operation_t* operation,
                                     isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(destination, source), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   ISTHMUS_TRY(check_array(ranges, "ranges", range_count));
                   const std::span range_span{ranges, range_count};
                   auto list = list_ranges(range_span);
                   ISTHMUS_TRY(list);
                   auto destination_endpoint =
                       endpoint_of_ranges(*destination, list->destination_begin,
                                          list->destination_bytes, range_span, k_destination_side);
                   ISTHMUS_TRY(destination_endpoint);
                   auto source_endpoint = endpoint_of_ranges(
                       *source, list->source_begin, list->source_bytes, range_span, k_source_side);
                   ISTHMUS_TRY(source_endpoint);
                   return copy_ranges(object(queue), *destination_endpoint, *source_endpoint,
                                      *std::move(list), std::move(options));
                 });
}

isthmus_status_t isthmus_copy_nd(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
                                 const size_t* destination_strides,
                                 const isthmus_endpoint_t* source, const size_t* source_strides,
                                 const size_t* shape, size_t dimensions, size_t item_bytes,
                                 const isthmus_operation_t* operation,
                                 isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(destination, source), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   ISTHMUS_TRY(check_array(destination_strides, "destination_strides", dimensions));
                   ISTHMUS_TRY(check_array(source_strides, "source_strides", dimensions));
                   ISTHMUS_TRY(check_array(shape, "shape", dimensions));
                   auto block =
                       block_of(destination_strides, source_strides, shape, dimensions, item_bytes);
                   ISTHMUS_TRY(block);
                   auto destination_bytes = extent_nd(*block, Side::destination, "destination");
                   ISTHMUS_TRY(destination_bytes);
                   auto source_bytes = extent_nd(*block, Side::source, "source");
                   ISTHMUS_TRY(source_bytes);
                   ISTHMUS_TRY(check_nested(*block));
                   auto destination_endpoint = endpoint_of(*destination, *destination_bytes, true);
                   ISTHMUS_TRY(destination_endpoint);
                   auto source_endpoint = endpoint_of(*source, *source_bytes, false);
                   ISTHMUS_TRY(source_endpoint);
                   if (block->width == 0) {
                     return copy(object(queue), *destination_endpoint, *source_endpoint, 0,
                                 std::move(options));
                   }
                   block->destination = destination_endpoint->pointer;
                   block->source = source_endpoint->pointer;
                   return copy_strided(object(queue), *destination_endpoint, *source_endpoint,
                                       *block, std::move(options));
                 });
}

isthmus_status_t isthmus_fill(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
                              const void* pattern, size_t pattern_bytes, size_t nbytes,
                              const isthmus_operation_t* operation,
                              isthmus_event_t** event) noexcept {
  return operate(
      ISTHMUS_NEEDS(destination, pattern), operation, event,
      [&](TransferOptions options) -> Submitted {
        auto bytes = pattern_of(pattern, pattern_bytes, nbytes);
        ISTHMUS_TRY(bytes);
        auto destination_endpoint = target_at(*destination, nbytes, queue, DeviceWork::fill);
        ISTHMUS_TRY(destination_endpoint);
        return fill(object(queue), *destination_endpoint, *bytes, nbytes, std::move(options));
      });
}

isthmus_status_t isthmus_prefetch(isthmus_queue_t* queue, const isthmus_endpoint_t* endpoint,
                                  size_t nbytes, int to_host, const isthmus_operation_t* operation,
                                  isthmus_event_t** event) noexcept {
  return operate(
      ISTHMUS_NEEDS(endpoint), operation, event, [&](TransferOptions options) -> Submitted {
        auto target = target_at(*endpoint, nbytes, queue, DeviceWork::hint);
        ISTHMUS_TRY(target);
        return prefetch(object(queue), *target, nbytes, to_host != 0, std::move(options));
      });
}

isthmus_status_t isthmus_advise(isthmus_queue_t* queue, const isthmus_endpoint_t* endpoint,
                                size_t nbytes, uint32_t advice,
                                const isthmus_operation_t* operation,
                                isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(endpoint), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   auto target = target_at(*endpoint, nbytes, queue, DeviceWork::hint);
                   ISTHMUS_TRY(target);
                   return advise(object(queue), *target, nbytes, advice, std::move(options));
                 });
}
