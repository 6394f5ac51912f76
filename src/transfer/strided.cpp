// SPDX-License-Identifier: Apache-2.0
#include "transfer/strided.hpp"

#include "core/expects.hpp"
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

Submitted copy_strided(Queue* requested, const Endpoint& destination, const Endpoint& source,
                       const StridedCopy& copy, TransferOptions options) {
  ISTHMUS_EXPECTS(copy.destination == destination.pointer && copy.source == source.pointer);
  const auto shape = simplified(copy, Side::destination);
  if (shape.is_rows()) {
    return copy_2d(requested, destination, source, as_rows(shape), std::move(options));
  }
  const auto plan = CopyPlan::of_block(destination, source, shape);
  if (overlap(destination.pointer, plan.destination_bytes, source.pointer, plan.source_bytes)) {
    auto chosen = choose_queue(requested, destination, source);
    ISTHMUS_TRY(chosen);
    return overlap_error(plan.nbytes);
  }
  return copy_strided_disjoint(requested, destination, source, shape, std::move(options));
}

Submitted copy_strided_disjoint(Queue* requested, const Endpoint& destination,
                                const Endpoint& source, const StridedCopy& copy,
                                TransferOptions options) {
  ISTHMUS_EXPECTS(copy.destination == destination.pointer && copy.source == source.pointer);
  const auto shape = simplified(copy, Side::destination);
  if (shape.is_rows()) {
    return copy_2d_disjoint(requested, destination, source, as_rows(shape), std::move(options));
  }
  auto chosen = choose_queue(requested, destination, source);
  ISTHMUS_TRY(chosen);
  const auto plan = CopyPlan::of_block(destination, source, shape);
  return make_copy(*chosen, plan, std::move(options), [shape] { copy_strided(shape); });
}

}  // namespace isthmus
