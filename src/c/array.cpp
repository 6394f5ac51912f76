// SPDX-License-Identifier: Apache-2.0
// Arrays: their dtypes, copies and fills.

#include "array/copying.hpp"
#include "array/dtype.hpp"
#include "array/elements.hpp"
#include "c/endpoints.hpp"
#include "c/operation.hpp"
#include "core/sizes.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype, isthmus_dtype_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    ISTHMUS_TRY(check_dtype(dtype));
    const auto& facts = facts_of(dtype);
    *info = {info->struct_size,
             facts.name,
             facts.nbytes,
             facts.alignment,
             facts.kind,
             facts.dlpack_code,
             facts.nbytes < 32 ? static_cast<std::uint8_t>(facts.nbytes * 8) : std::uint8_t{0}};
    return {};
  });
}

int isthmus_can_cast(isthmus_dtype_t source_dtype, isthmus_dtype_t target_dtype,
                     isthmus_casting_t casting) noexcept {
  return can_cast(source_dtype, target_dtype, casting) ? 1 : 0;
}

namespace {

Result<ArraySide> side_of(const isthmus_array_t& array, const char* name, bool writes) {
  auto layout = layout_of(array, name);
  ISTHMUS_TRY(layout);
  auto endpoint = endpoint_around(array.endpoint, layout->first_offset, layout->nbytes, writes);
  if (!endpoint && endpoint.failure().code() == ISTHMUS_ERROR_OUT_OF_RANGE) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "an element of the {} lies outside its memory: {}",
                name, endpoint.failure().message());
  }
  ISTHMUS_TRY(endpoint);
  return ArraySide{*std::move(endpoint), *layout};
}

Result<bool> overlap_of(const isthmus_array_t& one, const isthmus_array_t& other) {
  auto first = side_of(one, "one", false);
  ISTHMUS_TRY(first);
  auto second = side_of(other, "other", false);
  ISTHMUS_TRY(second);
  return may_share_bytes(first->layout, address(first->endpoint.pointer), second->layout,
                         address(second->endpoint.pointer));
}

}  // namespace

isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const isthmus_array_t* source, isthmus_casting_t casting,
                                    const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(ISTHMUS_NEEDS(destination, source), operation, event,
                 [&](TransferOptions options) -> Submitted {
                   ISTHMUS_TRY(check_cast(source->dtype, destination->dtype, casting));
                   auto destination_side = side_of(*destination, "destination", true);
                   ISTHMUS_TRY(destination_side);
                   auto source_side = side_of(*source, "source", false);
                   ISTHMUS_TRY(source_side);
                   return copy_array(object(queue), *destination_side, *source_side,
                                     std::move(options));
                 });
}

isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const void* value, isthmus_dtype_t value_dtype,
                                    isthmus_casting_t casting, const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(
      ISTHMUS_NEEDS(destination, value), operation, event,
      [&](TransferOptions options) -> Submitted {
        ISTHMUS_TRY(check_cast(value_dtype, destination->dtype, casting));
        auto destination_side = side_of(*destination, "destination", true);
        ISTHMUS_TRY(destination_side);
        auto target = target_of(destination_side->endpoint, destination_side->layout.nbytes,
                                object(queue), DeviceWork::fill);
        ISTHMUS_TRY(target);
        destination_side->endpoint = *std::move(target);
        std::array<std::byte, k_largest_element> element{};
        convert_elements({element.data(), 0, static_cast<const std::byte*>(value), 0, 1},
                         conversion_of(destination->dtype, value_dtype),
                         destination_side->layout.item());
        return fill_array(object(queue), *destination_side, element.data(), std::move(options));
      });
}

int isthmus_arrays_overlap(const isthmus_array_t* one, const isthmus_array_t* other) noexcept try {
  if (one == nullptr || other == nullptr) {
    return 0;
  }
  auto answer = overlap_of(*one, *other);
  return answer && *answer ? 1 : 0;
} catch (const std::bad_alloc&) {
  return 1;
}
