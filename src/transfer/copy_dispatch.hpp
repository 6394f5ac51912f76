// SPDX-License-Identifier: Apache-2.0
#pragma once
// Executes a validated copy in the cheapest way: on the host, through the staging ring, by the
// driver, or between two devices through host memory. Thread-safe.

#include "os/virtual_memory.hpp"
#include "transfer/pageable.hpp"
#include "transfer/staged.hpp"
#include "transfer/submitting.hpp"
#include "transfer/transfer_events.hpp"

namespace isthmus {

// `host_copy()` performs the complete copy on the host. It owns everything that it accesses except
// the endpoints' memory.
template <class Effect>
Submitted make_checked_copy(Queue* queue, const CopyPlan& plan, TransferOptions options,
                            const Effect& host_copy) {
  TouchedMemory touched;
  touched.add(plan.destination, plan.destination_bytes, true);
  touched.add(plan.source, plan.source_bytes, false);
  const bool by_host = plan.destination.host_can_copy() && plan.source.host_can_copy() &&
                       host_executes(queue, touched, options, plan.nbytes);
  if (!by_host && is_better_staged(*queue, plan, options.blocking)) {
    return copy_pageable(*queue, plan, std::move(options));
  }
  if (plan.is_fresh) {
    os::populate_pages(plan.destination.pointer, plan.destination_bytes);
  }
  if (by_host) {
    return run_on_host(queue, touched, options, host_copy);
  }
  auto execution_queue = execution_queue_for(*queue, plan.destination, plan.source);
  ISTHMUS_TRY(execution_queue);
  if (*execution_queue) {
    keep_pinned(**execution_queue, plan, options.owners);
    return submit_on_queue(*queue, **execution_queue, touched, options, [&](WaitList after) {
      return plan.submit_to(**execution_queue, after);
    });
  }
  return copy_staged(*queue, plan, std::move(options));
}

template <class Effect>
Submitted make_copy(Queue* queue, const CopyPlan& plan, TransferOptions options,
                    const Effect& host_copy) {
  auto submitted = make_checked_copy(queue, plan, std::move(options), host_copy);
  ISTHMUS_TRY(submitted);
  observe_copy(queue, plan.destination, plan.source, plan.nbytes);
  if (plan.nbytes == plan.destination_bytes) {  // without gaps
    note_overwritten(plan.destination, plan.nbytes, *submitted);
  }
  return submitted;
}

}  // namespace isthmus
