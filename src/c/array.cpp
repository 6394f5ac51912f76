// Arrays: their dtypes, copies and fills.

#include "array/dtype.hpp"
#include "c/operation.hpp"
#include "c/places.hpp"

using namespace isthmus;
using namespace isthmus::c;

isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype, isthmus_dtype_info_t* info) noexcept {
  return guarded([&]() -> result<void> {
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
             static_cast<std::uint8_t>(facts.nbytes * 8)};
    return {};
  });
}

int isthmus_can_cast(isthmus_dtype_t from, isthmus_dtype_t to, isthmus_casting_t casting) noexcept {
  return can_cast(from, to, casting) ? 1 : 0;
}

isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const isthmus_array_t* source, isthmus_casting_t casting,
                                    const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(operation, event, [&](transfer_options options) -> submitted {
    ISTHMUS_NEEDS(destination);
    ISTHMUS_NEEDS(source);
    ISTHMUS_TRY(check_cast(source->dtype, destination->dtype, casting));
    static_cast<void>(queue);
    static_cast<void>(options);
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "copies of arrays");
  });
}

isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
                                    const void* value, isthmus_dtype_t value_dtype,
                                    isthmus_casting_t casting, const isthmus_operation_t* operation,
                                    isthmus_event_t** event) noexcept {
  return operate(operation, event, [&](transfer_options options) -> submitted {
    ISTHMUS_NEEDS(destination);
    ISTHMUS_NEEDS(value);
    ISTHMUS_TRY(check_cast(value_dtype, destination->dtype, casting));
    static_cast<void>(queue);
    static_cast<void>(options);
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "fills of arrays");
  });
}

int isthmus_arrays_overlap(const isthmus_array_t* one, const isthmus_array_t* other) noexcept {
  return one == other ? 1 : 0;
}
