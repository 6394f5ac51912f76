// SPDX-License-Identifier: Apache-2.0
#pragma once
// Retains an out-of-order queue, to which this library submits no more work, until the queue's work
// has completed (backend/workarounds/delayed_release.hpp).

#include "backend/context.hpp"
#include "backend/opencl/device.hpp"
#include "backend/opencl/driver.hpp"
#include "backend/opencl/native_queue.hpp"

namespace isthmus::opencl {

// A reference to the queue `handle`, and the objects that the queue belongs to.
struct RetainedQueue {
  Ref<isthmus::Context> owning_context;
  NativeContext context;
  const Device& device;
  cl_command_queue handle;
};

class DelayedQueue final : public DrainedQueue {
 public:
  // Takes ownership of the reference to the queue. The reference is released after `running` have
  // completed, and after the completion of work from other code that has released the queue in the
  // meantime. Throws std::bad_alloc; the reference is then leaked.
  static void begin(RetainedQueue queue, WaitList running);

  // Called only by `begin`. `no_more_work`: no code can submit work to the queue any more.
  DelayedQueue(RetainedQueue queue, bool no_more_work) noexcept;
  ~DelayedQueue();

  // Always false, since work of other code may be pending.
  [[nodiscard]] bool is_known_idle() noexcept override { return false; }
  [[nodiscard]] NativeQueue retain_native() noexcept override {
    return retain_native_queue(calls(), queue_.handle);
  }

 private:
  static void begin(RetainedQueue queue, WaitList running, bool no_more_work);
  [[nodiscard]] const Api& calls() const noexcept { return queue_.context.driver.calls; }
  [[nodiscard]] bool holds_last_reference() const noexcept;
  void release_after_barrier() noexcept;

  RetainedQueue queue_;
  const bool no_more_work_;
};

}  // namespace isthmus::opencl
