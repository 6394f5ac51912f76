// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts about a queue of a driver, which the backend fills in when it creates the Queue. They never
// change.

namespace isthmus {

struct QueueTraits {
  // A device's default queue: the platform owns it, and it cannot be closed.
  bool is_default = false;
  // The handle comes from other code, so the queue may have external work from the start.
  bool is_adopted = false;
  // Other code submits to the driver's queue without obtaining its handle.
  bool is_default_stream = false;
  // The driver runs everything submitted to its queue, by any code, in order of submission, as long
  // as the Queue exists.
  bool keeps_order = false;
  // `Queue::unfinished`, once the handle is exported, may wait for host functions that the driver
  // runs. If so, a thread that is freeing memory must not call `unfinished`, since such a function
  // may free memory too.
  bool query_may_block = false;
  // Library threads may query the queue only while a thread of the program is in a call of the
  // library (workarounds/query_on_demand.hpp). That call waits at most 4 ms for the query, since
  // the driver may block it.
  bool is_queried_on_demand = false;
};

}  // namespace isthmus
