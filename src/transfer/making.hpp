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
submitted make_checked_copy(queue* on, const movement& what, transfer_options options,
                            const Effect& on_host) {
  touched_memory touched;
  touched.add(what.destination, what.destination_bytes, true);
  touched.add(what.source, what.source_bytes, false);
  const bool by_host = what.destination.host_can_copy() && what.source.host_can_copy() &&
                       host_does_it(on, touched, options, what.nbytes);
  if (!by_host && is_better_staged(*on, what, options.blocking)) {
    return copy_pageable(*on, what, std::move(options));
  }
  if (what.is_fresh) {
    os::populate_pages(what.destination.pointer, what.destination_bytes);
  }
  if (by_host) {
    return directly(on, touched, options, on_host);
  }
  auto carrying = carrier(*on, what.destination, what.source);
  ISTHMUS_TRY(carrying);
  if (*carrying) {
    keep_pinned(**carrying, what, options.owners);
    return on_queue(*on, **carrying, touched, options,
                    [&](wait_list after) { return what.put_to(**carrying, after); });
  }
  return copy_staged(*on, what, std::move(options));
}

template <class Effect>
submitted make_copy(queue* on, const movement& what, transfer_options options,
                    const Effect& on_host) {
  auto made = make_checked_copy(on, what, std::move(options), on_host);
  ISTHMUS_TRY(made);
  if (what.nbytes == what.destination_bytes) {  // without gaps
    note_overwritten(what.destination, what.nbytes, *made);
  }
  return made;
}

}  // namespace isthmus
