// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills that the host executes itself, in the order of a queue or of none: on the
// caller's thread if the call blocks, else on a library thread, for which later work on the queue
// then waits.

#include <memory>

#include "transfer/copy_plan.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

// An operation of this kind; owns what it needs while it is in flight.
class HostDriven {
 public:
  HostDriven() = default;  // of plain memory alone
  explicit HostDriven(const CopyPlan& plan);
  HostDriven(const HostDriven&) = delete;
  HostDriven& operator=(const HostDriven&) = delete;
  virtual ~HostDriven() = default;

 protected:
  // Called once everything that it is ordered after has ended. Must leave nothing in flight,
  // whatever it returns. May throw std::bad_alloc.
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

// `queue` null: in the order of no queue. If it blocks, or the queue cannot wait for the host, the
// operation has ended when this returns.
[[nodiscard]] Submitted carry_out(Queue* queue, const std::shared_ptr<HostDriven>& operation,
                                  TransferOptions options);

}  // namespace isthmus
