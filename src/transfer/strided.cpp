// SPDX-License-Identifier: Apache-2.0
#include "transfer/strided.hpp"

#include "transfer/copy_dispatch.hpp"

namespace isthmus {
namespace {

Pitched as_rows(const StridedCopy& copy) noexcept {
  if (copy.rank == 0) {
    return {copy.width, copy.width, copy.width, 1};
  }
  const auto& rows = copy.dimensions[0];
  return {rows.destination_stride, rows.source_stride, copy.width, rows.count};
}

}  // namespace

Submitted copy_strided(Queue* asked, const Endpoint& destination, const Endpoint& source,
                       const StridedCopy& given, TransferOptions options) {
  const auto shape = simplest(given, Side::destination);
  if (shape.is_rows()) {
    return copy_2d(asked, destination, source, as_rows(shape), std::move(options));
  }
  const auto what = CopyPlan::of_block(destination, source, shape);
  if (overlap(destination.pointer, what.destination_bytes, source.pointer, what.source_bytes)) {
    auto chosen = choose_queue(asked, destination, source);
    ISTHMUS_TRY(chosen);
    return refuse_overlap(what.nbytes);
  }
  return copy_strided_apart(asked, destination, source, shape, std::move(options));
}

Submitted copy_strided_apart(Queue* asked, const Endpoint& destination, const Endpoint& source,
                             const StridedCopy& given, TransferOptions options) {
  const auto shape = simplest(given, Side::destination);
  if (shape.is_rows()) {
    return copy_2d_apart(asked, destination, source, as_rows(shape), std::move(options));
  }
  auto chosen = choose_queue(asked, destination, source);
  ISTHMUS_TRY(chosen);
  const auto what = CopyPlan::of_block(destination, source, shape);
  return make_copy(*chosen, what, std::move(options), [shape] { copy_strided(shape); });
}

}  // namespace isthmus
