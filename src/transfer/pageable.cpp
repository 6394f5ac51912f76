// SPDX-License-Identifier: Apache-2.0
#include "transfer/pageable.hpp"

#include "backend/queue.hpp"
#include "core/expects.hpp"
#include "transfer/parallel_copy.hpp"

namespace isthmus {
namespace {

// For smaller copies, using a library thread while the caller continues costs more than it saves.
constexpr std::size_t k_min_async_bytes = std::size_t{2} << 20;

// Whether the host cannot access `memory` but can access `host`, which is pageable or pinned memory
// or memory of another driver.
bool is_device_only(const Endpoint& memory, const Endpoint& host) noexcept {
  return !memory.host_can_touch() && host.host_can_touch();
}

// Whether the destination is written in short separate runs.
bool is_scattered(const CopyPlan& plan) noexcept {
  constexpr std::size_t k_short = 32;
  if (plan.block == nullptr) {
    const auto& rows = plan.rows;
    return rows.height > 1 && rows.width < k_short && rows.destination_pitch != rows.width;
  }
  const auto copy = simplified(*plan.block, Side::destination);
  return copy.rank != 0 && copy.width < k_short &&
         copy.dimensions[copy.rank - 1].destination_stride != copy.width;
}

// Whether the copy writes short runs to host memory. If the device writes the runs itself they
// cross the bus one by one: 2 Mi runs of 4 bytes take 4.3 ms (H100).
bool is_scattered_to_host(const Device& device, const CopyPlan& plan) {
  const auto& memory = plan.destination.memory;
  return plan.nbytes >= k_min_async_bytes &&
         (!memory || memory->facts().kind == ISTHMUS_KIND_HOST) && is_scattered(plan) &&
         device.copies_strided();
}

// Whether the copy is faster through pinned memory of the device.
bool is_faster_staged(const Device& device, const CopyPlan& plan, bool to_device) {
  if (!to_device && is_scattered_to_host(device, plan)) {
    return true;
  }
  const auto* const first = (to_device ? plan.source : plan.destination).pointer;
  const auto* const last = first + (to_device ? plan.source_bytes : plan.destination_bytes) - 1;
  return plan.is_chunked() ? device.copies_ranges_better_staged(first, last)
                           : device.copies_better_staged(first, last, plan.nbytes, to_device);
}

}  // namespace

// Asynchronous copies on a queue with external work are not staged: work that the program submits
// to the queue's stream must run after copies submitted earlier, and a copy that host threads
// execute later cannot be ordered before it. If no pinned memory is available the driver copies.
bool is_better_staged(const Queue& queue, const CopyPlan& plan, bool blocking) {
  const bool to_device = is_device_only(plan.destination, plan.source);
  if (!to_device && !is_device_only(plan.source, plan.destination)) {
    return false;
  }
  const bool is_small = !plan.is_chunked() && plan.nbytes < k_min_async_bytes;
  if (!blocking && (is_small || queue.has_external_work())) {
    return false;
  }
  auto& device = (to_device ? plan.destination : plan.source).memory->device();
  return is_faster_staged(device, plan, to_device) && StagingRing::of(device).is_available();
}

Submitted copy_pageable(Queue& queue, const CopyPlan& plan, TransferOptions options) {
  const bool to_device = !plan.destination.host_can_touch();
  const auto& device_side = to_device ? plan.destination : plan.source;
  ISTHMUS_EXPECTS(device_side.memory);
  auto& device = device_side.memory->device();
  return copy_in_parallel(
      queue, plan, {StagingRing::of(device), !to_device, to_device},
      [&plan](std::size_t max_bytes) { return plan.cut(max_bytes); }, std::move(options));
}

}  // namespace isthmus
