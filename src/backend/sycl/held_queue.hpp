// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reference to a SYCL queue, registered so that the queue is drained at exit
// (backend/workarounds/exit_drain.hpp). Thread-safe.

#include "backend/sycl/reference.hpp"
#include "backend/workarounds/exit_drain.hpp"

namespace isthmus::sycl {

class HeldQueue final : public DrainedQueue {
 public:
  HeldQueue(const Api& calls, OwnedQueue reference) noexcept
      : calls_{calls}, reference_{std::move(reference)} {
    ExitDrain::instance().add(*this);
  }
  ~HeldQueue() { ExitDrain::instance().remove(*this); }

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  [[nodiscard]] QueueReference get() const noexcept { return reference_.get(); }
  // Leaks the reference.
  void abandon() noexcept { reference_.abandon(); }

  // Always false, since work of other code may be pending.
  [[nodiscard]] bool is_known_idle() noexcept override { return false; }
  [[nodiscard]] NativeQueue retain_native() noexcept override;

 private:
  const Api& calls_;
  OwnedQueue reference_;
};

}  // namespace isthmus::sycl
