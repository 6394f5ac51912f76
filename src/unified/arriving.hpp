#pragma once
// What has to end before the copies of a unified buffer can.

#include "backend/queue.hpp"
#include "buffer/buffer.hpp"

namespace isthmus {

// Whether a copy on `on` would wait for work that is there now, or on any other queue with this
// memory. Errors as `queue::unfinished` and `buffer::wait`, but for its TIMEOUT.
[[nodiscard]] result<bool> stands_behind_work(queue& on, buffer& memory);

}  // namespace isthmus
