// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills that the host executes, optionally in the order of a queue. A blocking call
// executes them on the caller's thread. Otherwise a library thread executes them, and later work on
// the queue waits for that thread.

#include <memory>

#include "transfer/copy_plan.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

// A copy or fill that the host executes. Owns the resources that it needs while it is in flight.
// Used by one thread at a time.
class HostDriven {
 public:
  HostDriven() = default;  // accesses plain host memory only
  explicit HostDriven(const CopyPlan& plan);
  HostDriven(const HostDriven&) = delete;
  HostDriven& operator=(const HostDriven&) = delete;
  virtual ~HostDriven() = default;

 protected:
  // Executes the operation. Called after everything that it is ordered after has completed. Must
  // leave nothing in flight, even on failure. May throw std::bad_alloc.
  [[nodiscard]] virtual Result<void> move() = 0;
  // Must release all driver objects.
  virtual void release_resources() noexcept {}

 private:
  friend Submitted carry_out(Queue* queue, const std::shared_ptr<HostDriven>& operation,
                             TransferOptions options);
  [[nodiscard]] Result<void> collect(Queue* queue);
  [[nodiscard]] Result<void> wait_for_dependencies() const;
  [[nodiscard]] Error run_guarded() noexcept;
  [[nodiscard]] Error run_to_completion() noexcept;
  void release_all() noexcept;
  [[nodiscard]] static Submitted run_async(Queue* queue,
                                           const std::shared_ptr<HostDriven>& operation);

  Ref<Allocation> destination_;
  Ref<Allocation> source_;
  TouchedMemory touched_;  // destroyed before the memory
  std::vector<Ref<Event>> after_;
  std::vector<Ref<Event>> conflicts_;  // order only: their failure does not propagate
  std::vector<Owner> owners_;
  Ref<LibraryEvent> done_ = make_ref<LibraryEvent>();
};

// Executes `operation` in the order of `queue`, or of no queue if null. If the call blocks, or the
// queue cannot wait for the host, the operation has completed when this returns.
[[nodiscard]] Submitted carry_out(Queue* queue, const std::shared_ptr<HostDriven>& operation,
                                  TransferOptions options);

}  // namespace isthmus
