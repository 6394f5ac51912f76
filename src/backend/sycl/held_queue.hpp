// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reference to a SYCL queue, registered so that the queue is drained at exit (exit_drain.hpp).

#include "backend/sycl/exit_drain.hpp"
#include "backend/sycl/reference.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {

class HeldQueue {
 public:
  HeldQueue(const Api& calls, OwnedQueue reference)
      : calls_{calls},
        reference_{std::move(reference)},
        position_{ExitDrain::instance().add(calls_, reference_.get())} {}
  ~HeldQueue() {
    if (!os::is_forked_child()) {
      ExitDrain::instance().remove(position_);
    }
  }
  HeldQueue(const HeldQueue&) = delete;
  HeldQueue& operator=(const HeldQueue&) = delete;

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  [[nodiscard]] QueueReference get() const noexcept { return reference_.get(); }
  // Leaks the reference.
  void abandon() noexcept { reference_.abandon(); }

 private:
  const Api& calls_;
  OwnedQueue reference_;
  ExitDrain::Position position_;
};

}  // namespace isthmus::sycl
