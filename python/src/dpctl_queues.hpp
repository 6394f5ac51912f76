#pragma once
// What memory for a dpctl.SyclQueue comes from: pools, and a queue of our own in its context.

#include "objects.hpp"

namespace isthmus::python {

struct dpctl_source {
  nb::object theirs;  // the dpctl.SyclQueue
  nb::object queue;   // the same as our Queue
  nb::object own;     // a Queue that nobody else has
  nb::object pool;    // None where the device has no memory of that kind
};

// `prepare(queue)` is Python's: (queue, its Queue, own, pool, pool, pool) for a dpctl.SyclQueue;
// for None of dpctl's default one.
void set_dpctl_preparer(nb::object prepare);

// Those asked for last are asked about again: some of their pools are not those that count now.
void forget_dpctl_queues();

// For memory of that kind on a dpctl.SyclQueue, or None. Those asked for last are kept, and so
// their queues. May run any code.
[[nodiscard]] dpctl_source dpctl_source_for(nb::handle queue, isthmus_kind_t kind);
// The dpctl.SyclQueue of one of our queues: the one that it was made from, if that is known.
[[nodiscard]] nb::object dpctl_queue_of(nb::handle ours);

}  // namespace isthmus::python
