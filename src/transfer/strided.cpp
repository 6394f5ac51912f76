#include "transfer/strided.hpp"

#include "transfer/pageable.hpp"
#include "transfer/staged.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {
namespace {

error refuse_overlap(const strided_copy& what) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "source and destination of a copy of {} overlap: copy by way of another buffer",
              describe_bytes(what.bytes()));
}

pitched as_rows(const strided_copy& what) noexcept {
  if (what.rank == 0) {
    return {what.width, what.width, what.width, 1};
  }
  const auto& rows = what.dimensions[0];
  return {rows.destination_stride, rows.source_stride, what.width, rows.count};
}

}  // namespace

submitted copy_strided(queue* asked, const endpoint& destination, const endpoint& source,
                       const strided_copy& given, transfer_options options) {
  const auto shape = simplest(given, side::destination);
  if (shape.is_rows()) {
    return copy_2d(asked, destination, source, as_rows(shape), std::move(options));
  }
  auto chosen = choose_queue(asked, destination, source);
  ISTHMUS_TRY(chosen);
  queue* on = *chosen;
  const auto what = movement::of_block(destination, source, shape);
  if (overlap(destination.pointer, what.destination_bytes, source.pointer, what.source_bytes)) {
    return refuse_overlap(shape);
  }
  touched_memory touched;
  touched.add(destination, what.destination_bytes, true);
  touched.add(source, what.source_bytes, false);
  const bool both_touchable = destination.host_can_touch() && source.host_can_touch();
  if (both_touchable && host_does_it(on, touched, options, what.nbytes)) {
    return directly(on, touched, options, [shape] { copy_strided(shape); });
  }
  if (auto* carrying = carrier(*on, destination, source)) {
    if (are_pieces_better_staged(*on, what, options.blocking)) {
      return copy_pageable(*on, what, std::move(options));
    }
    keep_pinned(*carrying, what, options.owners);
    return on_queue(*on, *carrying, touched, options,
                    [&](wait_list after) { return what.put_to(*carrying, after); });
  }
  return copy_staged(*on, what, std::move(options));
}

}  // namespace isthmus
