// SPDX-License-Identifier: Apache-2.0
#pragma once
// Retains an out-of-order queue to which this library submits nothing more, until its work has
// ended (backend/delayed_release.hpp).

#include "backend/opencl/context.hpp"
#include "backend/opencl/exit_drain.hpp"

namespace isthmus::opencl {

class DelayedQueue final : public DrainedAtExit {
 public:
  // Takes over the reference. It is released some time after `running` have ended, and after the
  // work of other code that released the queue in the meantime. Throws std::bad_alloc, and then the
  // reference is leaked.
  static void begin(Ref<Context> context, const Device& device, QueueHandle handle,
                    WaitList running);

  // Called by `begin` alone. `is_over`: no code submits work to the queue any more.
  DelayedQueue(Ref<Context> context, const Device& device, QueueHandle handle,
               bool is_over) noexcept;
  ~DelayedQueue();

  [[nodiscard]] const Api& calls() const noexcept { return context_->driver().calls(); }
  [[nodiscard]] QueueHandle handle() const noexcept { return handle_; }
  // Whether nothing can be pending. Always false, since work of other code may be.
  [[nodiscard]] static bool is_known_idle() noexcept { return false; }

 private:
  static void begin(Ref<Context> context, const Device& device, QueueHandle handle,
                    WaitList running, bool is_over);
  [[nodiscard]] bool holds_last_reference() const noexcept;
  void release_after_barrier() noexcept;

  Ref<Context> context_;
  const Device& device_;
  QueueHandle handle_;
  const bool is_over_;
};

}  // namespace isthmus::opencl
