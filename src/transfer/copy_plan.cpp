// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_plan.hpp"

#include "transfer/strided_parts.hpp"

namespace isthmus {

namespace {

// The side whose order of elements packed chunks have. If the device can reorder elements, it is
// the host's side, so that the host copies long runs. Otherwise it is the device's side.
Side packing_side(const Endpoint& destination, const Endpoint& source) {
  const bool to_host = destination.host_can_touch();
  const auto& there = to_host ? source : destination;
  const bool is_put_in_order =
      there.memory && to_host != source.host_can_touch() && there.memory->device().copies_strided();
  return to_host == is_put_in_order ? Side::destination : Side::source;
}

}  // namespace

std::unique_ptr<const Parts> CopyPlan::cut(std::size_t most_bytes) const {
  const auto device_side = destination.host_can_touch() ? Side::source : Side::destination;
  if (block != nullptr) {
    return cut_strided(*block, packing_side(destination, source), most_bytes);
  }
  if (ranges.empty()) {
    return cut_rows(rows, most_bytes);
  }
  return cut_ranges({destination.pointer, source.pointer, ranges}, device_side, most_bytes);
}

Submitted CopyPlan::put_to(Queue& queue, WaitList after) const {
  if (!ranges.empty()) {
    return queue.copy_ranges({destination.pointer, source.pointer, ranges}, after);
  }
  if (block != nullptr) {
    return put_strided(queue, *block, after);
  }
  return rows.height == 1 ? queue.copy(rows.destination, rows.source, rows.width, after)
                          : queue.copy_2d(rows, after);
}

}  // namespace isthmus
