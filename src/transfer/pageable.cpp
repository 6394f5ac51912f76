// SPDX-License-Identifier: Apache-2.0
#include "transfer/pageable.hpp"

#include "backend/queue.hpp"
#include "transfer/parallel_copy.hpp"

namespace isthmus {
namespace {

// For smaller copies a thread that copies while the caller continues costs more than it saves.
constexpr std::size_t k_least_behind = std::size_t{2} << 20;

// Whether `memory` is accessible to its device only, and `plain` to the host: pageable or pinned
// memory, or memory of another driver.
bool is_of_a_device(const Endpoint& memory, const Endpoint& plain) noexcept {
  return !memory.host_can_touch() && plain.host_can_touch();
}

// Whether the destination is written in short separate runs.
bool is_scattered(const CopyPlan& movement) noexcept {
  constexpr std::size_t k_short = 32;
  if (movement.block == nullptr) {
    const auto& rows = movement.rows;
    return rows.height > 1 && rows.width < k_short && rows.destination_pitch != rows.width;
  }
  const auto shape = simplest(*movement.block, Side::destination);
  return shape.rank != 0 && shape.width < k_short &&
         shape.dimensions[shape.rank - 1].destination_stride != shape.width;
}

// Whether it writes short runs to pinned memory. If the device writes them itself they cross the
// bus one by one: 2 Mi runs of 4 bytes in 4.3 ms (H100).
bool is_scattered_to_pinned(const Device& device, const CopyPlan& movement) {
  const auto& pinned = movement.destination.memory;
  return movement.nbytes >= k_least_behind &&
         (!pinned || pinned->what().kind == ISTHMUS_KIND_HOST) && is_scattered(movement) &&
         device.copies_strided();
}

// Whether the copy is faster through pinned memory of the device.
bool is_faster_staged(const Device& device, const CopyPlan& movement, bool to_device) {
  if (!to_device && is_scattered_to_pinned(device, movement)) {
    return true;
  }
  const auto* const first = (to_device ? movement.source : movement.destination).pointer;
  const auto* const last =
      first + (to_device ? movement.source_bytes : movement.destination_bytes) - 1;
  return movement.is_in_pieces()
             ? device.copies_pieces_better_staged(first, last)
             : device.copies_better_staged(first, last, movement.nbytes, to_device);
}

}  // namespace

// A program that submits work of its own to the queue's stream expects it to run after a copy that
// was submitted before it. A copy that host threads execute later cannot be ordered so. Without
// pinned memory the driver copies.
bool is_better_staged(const Queue& queue, const CopyPlan& movement, bool blocking) {
  const bool to_device = is_of_a_device(movement.destination, movement.source);
  if (!to_device && !is_of_a_device(movement.source, movement.destination)) {
    return false;
  }
  const bool is_small = !movement.is_in_pieces() && movement.nbytes < k_least_behind;
  if (!blocking && (is_small || queue.has_external_work())) {
    return false;
  }
  auto& where = (to_device ? movement.destination : movement.source).memory->device();
  return is_faster_staged(where, movement, to_device) && StagingRing::of(where).is_there();
}

Submitted copy_pageable(Queue& queue, const CopyPlan& movement, TransferOptions options) {
  const bool to_device = !movement.destination.host_can_touch();
  auto& where = (to_device ? movement.destination : movement.source).memory->device();
  return copy_by_crew(
      queue, movement, {StagingRing::of(where), !to_device, to_device},
      [&movement](std::size_t most_bytes) { return movement.cut(most_bytes); }, std::move(options));
}

}  // namespace isthmus
