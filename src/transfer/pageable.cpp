// SPDX-License-Identifier: Apache-2.0
#include "transfer/pageable.hpp"

#include "backend/queue.hpp"
#include "transfer/crew_copy.hpp"

namespace isthmus {
namespace {

// For smaller copies a thread that copies while the caller continues costs more than it saves.
constexpr std::size_t k_least_behind = std::size_t{2} << 20;

// Whether `memory` is accessible to its device only, and `plain` to the host: pageable or pinned
// memory, or memory of another driver.
bool is_of_a_device(const endpoint& memory, const endpoint& plain) noexcept {
  return !memory.host_can_touch() && plain.host_can_touch();
}

// Whether the destination is written in short separate runs.
bool is_scattered(const movement& what) noexcept {
  constexpr std::size_t k_short = 32;
  if (what.block == nullptr) {
    const auto& rows = what.rows;
    return rows.height > 1 && rows.width < k_short && rows.destination_pitch != rows.width;
  }
  const auto shape = simplest(*what.block, side::destination);
  return shape.rank != 0 && shape.width < k_short &&
         shape.dimensions[shape.rank - 1].destination_stride != shape.width;
}

// Whether it writes short runs to pinned memory. If the device writes them itself they cross the
// bus one by one: 2 Mi runs of 4 bytes in 4.3 ms (H100).
bool is_scattered_to_pinned(const device& where, const movement& what) {
  const auto& pinned = what.destination.memory;
  return what.nbytes >= k_least_behind && (!pinned || pinned->what().kind == ISTHMUS_KIND_HOST) &&
         is_scattered(what) && where.copies_strided();
}

// Whether the copy is faster through pinned memory of the device.
bool is_faster_staged(const device& where, const movement& what, bool to_device) {
  if (!to_device && is_scattered_to_pinned(where, what)) {
    return true;
  }
  const auto* const first = (to_device ? what.source : what.destination).pointer;
  const auto* const last = first + (to_device ? what.source_bytes : what.destination_bytes) - 1;
  return what.is_in_pieces() ? where.copies_pieces_better_staged(first, last)
                             : where.copies_better_staged(first, last, what.nbytes, to_device);
}

}  // namespace

// A program that submits work of its own to the queue's stream expects it to run after a copy that
// was submitted before it. A copy that host threads execute later cannot be ordered so. Without
// pinned memory the driver copies.
bool is_better_staged(const queue& on, const movement& what, bool blocking) {
  const bool to_device = is_of_a_device(what.destination, what.source);
  if (!to_device && !is_of_a_device(what.source, what.destination)) {
    return false;
  }
  const bool is_small = !what.is_in_pieces() && what.nbytes < k_least_behind;
  if (!blocking && (is_small || on.has_others_work())) {
    return false;
  }
  auto& where = (to_device ? what.destination : what.source).memory->where();
  return is_faster_staged(where, what, to_device) && staging_ring::of(where).is_there();
}

submitted copy_pageable(queue& on, const movement& what, transfer_options options) {
  const bool to_device = !what.destination.host_can_touch();
  auto& where = (to_device ? what.destination : what.source).memory->where();
  return copy_by_crew(
      on, what, {staging_ring::of(where), !to_device, to_device},
      [&what](std::size_t most_bytes) { return what.cut(most_bytes); }, std::move(options));
}

}  // namespace isthmus
