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
                         WaitList running, bool no_more_work) {
  const auto delayed_queue =
      std::make_shared<DelayedQueue>(std::move(context), device, handle, no_more_work);
  try {
    release_later(address(handle), running, delayed_queue);
  } catch (const std::bad_alloc&) {
    delayed_queue->handle_ = nullptr;
    throw;
  }
}

DelayedQueue::DelayedQueue(Ref<Context> context, const Device& device, QueueHandle handle,
                           bool no_more_work) noexcept
    : context_{std::move(context)}, device_{device}, handle_{handle}, no_more_work_{no_more_work} {
  if (device.traits().needs_drain_at_exit) {
    ExitDrain::instance().add(*this);
  }
}

DelayedQueue::~DelayedQueue() {
  const CallOfAnyThread counted;
  if (handle_ != nullptr && counted) {
    if (!no_more_work_ && holds_last_reference()) {
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

// The queue's owner may have submitted work before releasing the queue, and can no longer wait for
// that work. A barrier reports its completion.
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
