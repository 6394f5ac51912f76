// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks for earlier work that a copy of a unified buffer would wait for. Thread-safe.

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"

namespace isthmus {

// Whether a copy on `queue` would wait for earlier work: on that queue, or on any other queue that
// uses this memory. Errors as for `Queue::unfinished` and, except TIMEOUT, for `Buffer::wait`.
[[nodiscard]] Result<bool> has_pending_work(Queue& queue, Buffer& memory);

}  // namespace isthmus
