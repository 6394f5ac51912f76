// SPDX-License-Identifier: Apache-2.0
// Arrays: their dtypes, copies and fills.

#include "array/copying.hpp"
#include "array/dtype.hpp"
#include "array/elements.hpp"
#include "c/operation.hpp"
#include "c/places.hpp"
#include "core/sizes.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype, isthmus_dtype_info_t* info) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(info);
    if (info->struct_size < sizeof *info) {
      return is_too_small("info", info->struct_size, sizeof *info);
    }
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

Result<ArraySide> side_of(const isthmus_array_t& given, const char* name, bool writes) {
  auto layout = layout_of(given, name);
  ISTHMUS_TRY(layout);
  auto place = endpoint_around(given.place, layout->before, layout->nbytes, writes);
  if (!place && place.failure().code() == ISTHMUS_ERROR_OUT_OF_RANGE) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "an element of the {} lies outside its memory: {}",
                name, place.failure().message());
  }
  ISTHMUS_TRY(place);
  return ArraySide{*std::move(place), *layout};
}

Result<bool> overlap_of(const isthmus_array_t& one, const isthmus_array_t& other) {
  auto first = side_of(one, "one", false);
  ISTHMUS_TRY(first);
  auto second = side_of(other, "other", false);
  ISTHMUS_TRY(second);
  return may_share_bytes(first->layout, address(first->place.pointer), second->layout,
                         address(second->place.pointer));
}

}  // namespace

isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const isthmus_array_t* source, isthmus_casting_t casting,
                                    const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(operation, event, [&](TransferOptions options) -> Submitted {
    ISTHMUS_NEEDS(destination);
    ISTHMUS_NEEDS(source);
    ISTHMUS_TRY(check_cast(source->dtype, destination->dtype, casting));
    auto to = side_of(*destination, "destination", true);
    ISTHMUS_TRY(to);
    auto from = side_of(*source, "source", false);
    ISTHMUS_TRY(from);
    return copy_array(object(queue), *to, *from, std::move(options));
  });
}

isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const void* value, isthmus_dtype_t value_dtype,
                                    isthmus_casting_t casting, const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(operation, event, [&](TransferOptions options) -> Submitted {
    ISTHMUS_NEEDS(destination);
    ISTHMUS_NEEDS(value);
    ISTHMUS_TRY(check_cast(value_dtype, destination->dtype, casting));
    auto to = side_of(*destination, "destination", true);
    ISTHMUS_TRY(to);
    auto target = target_of(to->place, to->layout.nbytes, object(queue), DeviceWork::fill);
    ISTHMUS_TRY(target);
    to->place = *std::move(target);
    std::array<std::byte, k_largest_element> element{};
    convert_elements({element.data(), 0, static_cast<const std::byte*>(value), 0, 1},
                     conversion_of(destination->dtype, value_dtype), to->layout.item());
    return fill_array(object(queue), *to, element.data(), std::move(options));
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
