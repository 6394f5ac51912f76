// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executes a checked copy by the cheapest means: by the host itself, through the staging ring, by
// the driver, or through host memory between two devices.

#include "os/virtual_memory.hpp"
#include "transfer/pageable.hpp"
#include "transfer/staged.hpp"
#include "transfer/submitting.hpp"

namespace isthmus {

// `on_host()` performs the complete copy, and owns everything it needs except the endpoints'
// memory.
template <class Effect>
Submitted make_checked_copy(Queue* queue, const CopyPlan& movement, TransferOptions options,
                            const Effect& on_host) {
  TouchedMemory touched;
  touched.add(movement.destination, movement.destination_bytes, true);
  touched.add(movement.source, movement.source_bytes, false);
  const bool by_host = movement.destination.host_can_copy() && movement.source.host_can_copy() &&
                       host_does_it(queue, touched, options, movement.nbytes);
  if (!by_host && is_better_staged(*queue, movement, options.blocking)) {
    return copy_pageable(*queue, movement, std::move(options));
  }
  if (movement.is_fresh) {
    os::populate_pages(movement.destination.pointer, movement.destination_bytes);
  }
  if (by_host) {
    return directly(queue, touched, options, on_host);
  }
  auto carrying = carrier(*queue, movement.destination, movement.source);
  ISTHMUS_TRY(carrying);
  if (*carrying) {
    keep_pinned(**carrying, movement, options.owners);
    return on_queue(*queue, **carrying, touched, options,
                    [&](WaitList after) { return movement.put_to(**carrying, after); });
  }
  return copy_staged(*queue, movement, std::move(options));
}

template <class Effect>
Submitted make_copy(Queue* queue, const CopyPlan& movement, TransferOptions options,
                    const Effect& on_host) {
  auto made = make_checked_copy(queue, movement, std::move(options), on_host);
  ISTHMUS_TRY(made);
  if (movement.nbytes == movement.destination_bytes) {  // without gaps
    note_overwritten(movement.destination, movement.nbytes, *made);
  }
  return made;
}

}  // namespace isthmus
