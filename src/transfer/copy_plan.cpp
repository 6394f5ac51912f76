// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_plan.hpp"

#include "core/expects.hpp"
#include "transfer/strided_chunks.hpp"

namespace isthmus {

namespace {

// Chooses the side whose element order packed chunks use. If the device can reorder elements this
// is the host's side, so that the host copies long runs. Otherwise it is the device's side.
Side packing_side(const Endpoint& destination, const Endpoint& source) {
  const bool to_host = destination.host_can_touch();
  const auto& device_endpoint = to_host ? source : destination;
  const bool device_reorders = device_endpoint.memory && to_host != source.host_can_touch() &&
                               device_endpoint.memory->device().copies_strided();
  return to_host == device_reorders ? Side::destination : Side::source;
}

}  // namespace

std::unique_ptr<const CopyChunks> CopyPlan::cut(std::size_t max_bytes) const {
  const auto device_side = destination.host_can_touch() ? Side::source : Side::destination;
  if (block != nullptr) {
    return cut_strided(*block, packing_side(destination, source), max_bytes);
  }
  if (ranges.empty()) {
    return cut_rows(rows, max_bytes);
  }
  return cut_ranges({destination.pointer, source.pointer, ranges}, device_side, max_bytes);
}

Submitted CopyPlan::submit_to(Queue& queue, WaitList after) const {
  ISTHMUS_EXPECTS(destination.is_reachable_by(queue) && source.is_reachable_by(queue));
  if (!ranges.empty()) {
    return queue.copy_ranges({destination.pointer, source.pointer, ranges}, after);
  }
  if (block != nullptr) {
    return submit_strided(queue, *block, after);
  }
  return rows.height == 1 ? queue.copy(rows.destination, rows.source, rows.width, after)
                          : queue.copy_2d(rows, after);
}

}  // namespace isthmus
