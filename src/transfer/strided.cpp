// SPDX-License-Identifier: Apache-2.0
#include "transfer/strided.hpp"

#include "transfer/making.hpp"

namespace isthmus {
namespace {

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
  const auto what = movement::of_block(destination, source, shape);
  if (overlap(destination.pointer, what.destination_bytes, source.pointer, what.source_bytes)) {
    auto chosen = choose_queue(asked, destination, source);
    ISTHMUS_TRY(chosen);
    return refuse_overlap(what.nbytes);
  }
  return copy_strided_apart(asked, destination, source, shape, std::move(options));
}

submitted copy_strided_apart(queue* asked, const endpoint& destination, const endpoint& source,
                             const strided_copy& given, transfer_options options) {
  const auto shape = simplest(given, side::destination);
  if (shape.is_rows()) {
    return copy_2d_apart(asked, destination, source, as_rows(shape), std::move(options));
  }
  auto chosen = choose_queue(asked, destination, source);
  ISTHMUS_TRY(chosen);
  const auto what = movement::of_block(destination, source, shape);
  return make_copy(*chosen, what, std::move(options), [shape] { copy_strided(shape); });
}

}  // namespace isthmus
