// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations of one queue that have not taken effect yet, oldest first. Guarded by the lock of
// the engine that executes them.

#include <cstdint>
#include <deque>
#include <memory>

#include "backend/sim/operation.hpp"

namespace isthmus::sim {

class Engine;

struct QueueOperations {
  const void* context = nullptr;
  std::deque<Ref<Operation>> waiting;
  std::uint64_t next_number = 0;
  std::uint64_t demanded_below = 0;  // operations below this number are demanded
  std::uint64_t end_ns = 0;          // end time of the last operation that took effect
  bool busy = false;
  bool queue_destroyed = false;
  // Keeps the engine alive. Set while this object is in an agenda, which links its entries by
  // `next`.
  std::shared_ptr<Engine> keep_alive;
  std::shared_ptr<QueueOperations> next;
};

}  // namespace isthmus::sim
