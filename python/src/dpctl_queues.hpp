#pragma once
// What memory for a dpctl.SyclQueue comes from: pools, and a queue of our own in its context.

#include "objects.hpp"

namespace isthmus::python {

struct dpctl_source {
  nb::object theirs;    // the dpctl.SyclQueue
  nb::object queue;     // the same as our Queue
  nb::object own;       // a Queue that nobody else has
  nb::object pools[4];  // by kind; None where the device has no memory of it
};

// `prepare(queue)` is Python's: (queue, own, pool, pool, pool) for a dpctl.SyclQueue, or for None
// with that queue, dpctl's default one, before them.
void set_dpctl_preparer(nb::object prepare);

// For a dpctl.SyclQueue, or None. Keeps those asked for last, and so their queues.
[[nodiscard]] const dpctl_source& dpctl_source_for(nb::handle queue);
// The dpctl.SyclQueue of one of our queues: the one that it was made from, if that is known.
[[nodiscard]] nb::object dpctl_queue_of(nb::handle ours);

}  // namespace isthmus::python
