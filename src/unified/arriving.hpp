// SPDX-License-Identifier: Apache-2.0
#pragma once
// What must complete before the copies of a unified buffer can run.

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"

namespace isthmus {

// Whether a copy on `queue` would wait for earlier work: on that queue, or on any other queue that
// uses this memory. Errors as `Queue::unfinished` and `Buffer::wait`, except TIMEOUT.
[[nodiscard]] Result<bool> has_pending_work(Queue& queue, Buffer& memory);

}  // namespace isthmus
