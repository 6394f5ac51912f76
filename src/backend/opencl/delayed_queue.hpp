// SPDX-License-Identifier: Apache-2.0
#pragma once
// Retains an out-of-order queue, to which this library submits no more work, until the queue's work
// has completed (backend/delayed_release.hpp).

#include "backend/opencl/context.hpp"
#include "backend/opencl/exit_drain.hpp"

namespace isthmus::opencl {

class DelayedQueue final : public DrainedAtExit {
 public:
  // Takes ownership of a reference to `handle`. The reference is released after `running` have
  // completed, and after the completion of work from other code that has released the queue in the
  // meantime. Throws std::bad_alloc; the reference is then leaked.
  static void begin(Ref<Context> context, const Device& device, QueueHandle handle,
                    WaitList running);

  // Called only by `begin`. `no_more_work`: no code can submit work to the queue any more.
  DelayedQueue(Ref<Context> context, const Device& device, QueueHandle handle,
               bool no_more_work) noexcept;
  ~DelayedQueue();

  [[nodiscard]] const Api& calls() const noexcept { return context_->driver().calls(); }
  [[nodiscard]] QueueHandle handle() const noexcept { return handle_; }
  // Always false, since work of other code may be pending.
  [[nodiscard]] static bool is_known_idle() noexcept { return false; }

 private:
  static void begin(Ref<Context> context, const Device& device, QueueHandle handle,
                    WaitList running, bool no_more_work);
  [[nodiscard]] bool holds_last_reference() const noexcept;
  void release_after_barrier() noexcept;

  Ref<Context> context_;
  const Device& device_;
  QueueHandle handle_;
  const bool no_more_work_;
};

}  // namespace isthmus::opencl
