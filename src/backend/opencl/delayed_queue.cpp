// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/delayed_queue.hpp"

#include <memory>
#include <utility>

#include "backend/call_of_any_thread.hpp"
#include "backend/opencl/operation.hpp"
#include "backend/workarounds/delayed_release.hpp"
#include "core/sizes.hpp"

namespace isthmus::opencl {

void DelayedQueue::begin(RetainedQueue queue, WaitList running) {
  begin(std::move(queue), running, false);
}

void DelayedQueue::begin(RetainedQueue queue, WaitList running, bool no_more_work) {
  const auto key = address(queue.handle);
  const auto delayed_queue = std::make_shared<DelayedQueue>(std::move(queue), no_more_work);
  try {
    release_later(key, running, delayed_queue);
  } catch (const std::bad_alloc&) {
    delayed_queue->queue_.handle = nullptr;
    throw;
  }
}

DelayedQueue::DelayedQueue(RetainedQueue queue, bool no_more_work) noexcept
    : queue_{std::move(queue)}, no_more_work_{no_more_work} {
  if (queue_.device.traits().needs_drain_at_exit) {
    ExitDrain::instance().add_delayed(*this);
  }
}

DelayedQueue::~DelayedQueue() {
  const CallOfAnyThread counted;
  if (queue_.handle != nullptr && counted) {
    if (!no_more_work_ && holds_last_reference()) {
      release_after_barrier();
    } else {
      calls().release_queue(queue_.handle);
    }
  }
  ExitDrain::instance().remove(*this);
}

bool DelayedQueue::holds_last_reference() const noexcept {
  cl_uint references = 1;
  calls().get_queue_info(queue_.handle, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references,
                         nullptr);
  return references == 1;
}

// The queue's owner may have submitted work before releasing the queue, and can no longer wait for
// that work. A barrier reports its completion.
void DelayedQueue::release_after_barrier() noexcept try {
  std::vector<Ref<Event>> running;
  auto operation = make_ref<Operation>(queue_.context, queue_.device, GateList{});
  running.reserve(1);
  OperationEvents barrier;
  if (calls().enqueue_barrier(queue_.handle, 0, nullptr, &barrier.last) == CL_SUCCESS) {
    calls().flush(queue_.handle);
    operation->submitted(barrier);
    running.push_back(std::move(operation));
  }
  begin(queue_, running, true);
} catch (const std::bad_alloc&) {  // the reference is leaked
}

}  // namespace isthmus::opencl
