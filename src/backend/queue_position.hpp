// SPDX-License-Identifier: Apache-2.0
#pragma once
// The position of an operation in the order of a queue.

#include <cstdint>

namespace isthmus {

struct QueuePosition {
  std::uint64_t queue = 0;  // Queue::serial; 0: in the order of no queue
  // Does not decrease in the order of submission. A function's number is greater than those of all
  // operations before it and less than those of all operations after it.
  std::uint64_t number = 0;
};

}  // namespace isthmus
