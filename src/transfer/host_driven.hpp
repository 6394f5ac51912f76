// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies and fills that the host executes itself, in the order of a queue or of none: on the
// caller's thread if the call blocks, else on a library thread, for which later work on the queue
// then waits.

#include <memory>

#include "transfer/movement.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

// An operation of this kind; owns what it needs while it is in flight.
class host_driven {
 public:
  host_driven() = default;  // of plain memory alone
  explicit host_driven(const movement& what);
  host_driven(const host_driven&) = delete;
  host_driven& operator=(const host_driven&) = delete;
  virtual ~host_driven() = default;

 protected:
  // Called once everything that it is ordered after has ended. Must leave nothing in flight,
  // whatever it returns. May throw std::bad_alloc.
  [[nodiscard]] virtual result<void> move() = 0;
  // Must release all driver objects.
  virtual void let_go() noexcept {}

 private:
  friend submitted carry_out(queue* on, const std::shared_ptr<host_driven>& what,
                             transfer_options options);
  [[nodiscard]] result<void> collect(queue* on);
  [[nodiscard]] result<void> await_turn() const;
  [[nodiscard]] error run_guarded() noexcept;
  [[nodiscard]] error run_to_the_end() noexcept;
  void forget() noexcept;
  [[nodiscard]] static submitted run_behind(queue* on, const std::shared_ptr<host_driven>& what);

  ref<allocation> destination_;
  ref<allocation> source_;
  touched_memory touched_;  // destroyed before the memory
  std::vector<ref<event>> after_;
  std::vector<ref<event>> before_;  // order only: their failure does not propagate
  std::vector<owner> owners_;
  ref<library_event> done_ = make_ref<library_event>();
};

// `on` null: in the order of no queue. If it blocks, or the queue cannot wait for the host, the
// operation has ended when this returns.
[[nodiscard]] submitted carry_out(queue* on, const std::shared_ptr<host_driven>& what,
                                  transfer_options options);

}  // namespace isthmus
