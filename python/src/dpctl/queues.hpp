// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sources of memory for a dpctl.SyclQueue: pools, and an internal queue in its context. Guarded
// by the interpreter's lock.

#include "core/objects.hpp"

namespace isthmus::python {

struct DpctlSource {
  nb::object sycl_queue;  // the dpctl.SyclQueue
  nb::object queue;       // the same as a Queue
  nb::object internal;    // a Queue that is not visible to other code
  nb::object pool;        // None if the device has no memory of that kind
};

// `prepare(queue)` is a Python function: it returns (queue, its Queue, internal Queue, pool, pool,
// pool) for a dpctl.SyclQueue, and for None those of dpctl's default one.
void set_dpctl_preparer(nb::object prepare);

// Drops the cached results, because some of their pools are no longer the current ones.
void clear_dpctl_queues();

// The source of memory of that kind for a dpctl.SyclQueue; None stands for dpctl's default queue.
// The most recent results are cached, which keeps their queues alive. May run any code.
[[nodiscard]] DpctlSource dpctl_source_for(nb::handle queue, isthmus_kind_t kind);
// The dpctl.SyclQueue of a Queue: the one that it was created from, if that is known.
[[nodiscard]] nb::object dpctl_queue_of(nb::handle queue);

}  // namespace isthmus::python
