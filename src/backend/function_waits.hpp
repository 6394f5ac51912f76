// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects waits that would never end: a function on a queue waits for an operation that starts only
// after the function has returned, or two functions wait for each other.
//
// An operation follows a function if it was submitted to the same queue later, or if it waits for
// an operation that follows the function. While functions are pending, each submission records on
// its queue which of them its dependencies follow. These records are transitively closed, so an
// operation follows exactly those functions that its own queue lists up to its position.
//
// Not detected: waits for other threads, for events that only the program completes, for pins
// (which count the copies that use them, but do not know their events), and for operations of
// another Queue of the same driver queue, whose numbers are not comparable.
//
// Thread-safe. While no function is pending, a submission costs one load. Without memory for a
// record, the operation is not recorded as one that follows the function.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/queue_position.hpp"
#include "core/status.hpp"
#include "core/tls.hpp"

namespace isthmus {

using QueuePositions = std::span<const QueuePosition>;

// A function from its submission until it was destroyed.
class PendingFunction {
 public:
  PendingFunction() noexcept = default;
  PendingFunction(const PendingFunction&) = delete;
  PendingFunction& operator=(const PendingFunction&) = delete;
  ~PendingFunction();

  // Called once, before the function is submitted at `position`. Throws std::bad_alloc.
  void begin(QueuePosition position);
  [[nodiscard]] QueuePosition position() const noexcept { return position_; }

 private:
  friend class FunctionWait;

  QueuePosition position_;
  // While the function waits: the last functions of each queue that must return before.
  std::vector<QueuePosition> awaited_;
};

extern std::atomic<std::size_t> pending_functions;
// The function that this thread runs.
ISTHMUS_TLS_MODEL inline thread_local constinit PendingFunction* running_function = nullptr;

[[nodiscard]] inline bool has_pending_functions() noexcept {
  return pending_functions.load(std::memory_order_relaxed) != 0;
}
// Whether this thread runs a function.
[[nodiscard]] inline bool is_in_function() noexcept { return running_function != nullptr; }

// While the object exists, this thread runs the function. Functions do not nest.
class RunningFunction {
 public:
  explicit RunningFunction(PendingFunction& function) noexcept;
  RunningFunction(const RunningFunction&) = delete;
  RunningFunction& operator=(const RunningFunction&) = delete;
  ~RunningFunction();
};

// Records an operation at `position` that waits for operations at `dependencies`. Throws
// std::bad_alloc.
void record_dependencies(QueuePosition position, QueuePositions dependencies);
// Adds to `out` the last function of each queue that operations at `positions` follow.
// Throws std::bad_alloc.
void add_followed_functions(QueuePositions positions, std::vector<QueuePosition>& out);

// A wait of this thread, from `begin` to the end of the object. Functions that check later waits
// know it.
class FunctionWait {
 public:
  FunctionWait() noexcept = default;
  FunctionWait(const FunctionWait&) = delete;
  FunctionWait& operator=(const FunctionWait&) = delete;
  ~FunctionWait();

  // Begins the wait for operations at `positions`. Called at most once, on a thread that runs a
  // function. DEADLOCK if the wait would never end; it has then not begun. Throws std::bad_alloc.
  [[nodiscard]] Result<void> begin(QueuePositions positions);

 private:
  bool has_begun_ = false;
  std::vector<QueuePosition> outer_;  // what an enclosing wait of this thread awaits
};

}  // namespace isthmus
