// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/delayed_queue.hpp"

#include <memory>
#include <utility>

#include "backend/call_of_any_thread.hpp"
#include "backend/delayed_release.hpp"
#include "backend/opencl/gate.hpp"
#include "core/sizes.hpp"

namespace isthmus::opencl {

void DelayedQueue::begin(Ref<Context> context, const Device& device, QueueHandle handle,
                         WaitList running) {
  begin(std::move(context), device, handle, running, false);
}

void DelayedQueue::begin(Ref<Context> context, const Device& device, QueueHandle handle,
                         WaitList running, bool is_over) {
  const auto held = std::make_shared<DelayedQueue>(std::move(context), device, handle, is_over);
  try {
    release_later(address(handle), running, held);
  } catch (const std::bad_alloc&) {
    held->handle_ = nullptr;
    throw;
  }
}

DelayedQueue::DelayedQueue(Ref<Context> context, const Device& device, QueueHandle handle,
                           bool is_over) noexcept
    : context_{std::move(context)}, device_{device}, handle_{handle}, is_over_{is_over} {
  if (device.traits().needs_drain_at_exit) {
    ExitDrain::instance().add(*this);
  }
}

DelayedQueue::~DelayedQueue() {
  const CallOfAnyThread counted;
  if (handle_ != nullptr && counted) {
    if (!is_over_ && holds_last_reference()) {
      release_after_barrier();
    } else {
      calls().release_queue(handle_);
    }
  }
  ExitDrain::instance().remove(*this);
}

bool DelayedQueue::holds_last_reference() const noexcept {
  Number references = 1;
  calls().get_queue_info(handle_, cl::k_queue_references, sizeof references, &references, nullptr);
  return references == 1;
}

// Its owner may have submitted work before releasing the queue, and can no longer wait for it. A
// barrier reports the end of that work.
void DelayedQueue::release_after_barrier() noexcept try {
  std::vector<Ref<Event>> running;
  auto operation = make_ref<Operation>(context_->driver(), context_->handle(), device_, GateList{});
  running.reserve(1);
  OperationEvents barrier;
  if (calls().enqueue_barrier(handle_, 0, nullptr, &barrier.last) == cl::k_success) {
    calls().flush(handle_);
    operation->submitted(barrier);
    running.push_back(std::move(operation));
  }
  begin(context_, device_, handle_, running, true);
} catch (const std::bad_alloc&) {  // the reference is leaked
}

}  // namespace isthmus::opencl
