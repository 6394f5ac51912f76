// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/queue.hpp"

#include "backend/cuda/copy.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/fill.hpp"
#include "backend/cuda/pointer.hpp"
#include "backend/cuda/ranges.hpp"
#include "backend/cuda/strided.hpp"
#include "backend/cuda/thread_queues.hpp"
#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {

// Operations on the stream still complete: the driver destroys the stream after them.
Queue::~Queue() {
  if (!traits().is_adopted && handle_ != legacy_stream() && !os::drivers_unavailable()) {
    device_.streams().remove(handle_, *this);
    if (const ContextGuard guard{calls(), device_.primary_or_null()};
        guard.outcome() == cu::k_success) {
      calls().destroy_stream(handle_);
    }
  }
}

CUstream Queue::stream() const noexcept {
  return owner_thread_ == 0 || owner_thread_ == current_thread_id() ? handle_ : legacy_stream();
}

// The legacy default stream has the same handle on every device, the per-thread default stream also
// on every thread, so neither handle identifies a queue.
std::uintptr_t Queue::key() const noexcept {
  if (owner_thread_ != 0) {
    return isthmus::Queue::key();
  }
  return handle_ == legacy_stream() ? address(&device_) : address(handle_);
}

// DEPENDENCY if one of `after` failed.
template <class Command>
Error Queue::submit_now(Operation& event, const char* call, WaitList after,
                        const Command& command) const {
  ISTHMUS_EXPECTS(are_ready(after));
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const ContextGuard guard{calls(), device_.primary_or_null()};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  if (auto error = check_not_capturing()) {
    return error;
  }
  if (const auto outcome = enqueue_waits(after); outcome != cu::k_success) {
    return call_failed("cuStreamWaitEvent", outcome);
  }
  auto outcome = command();
  if (outcome == cu::k_success) {
    outcome = calls().record(event.handle(), stream());
    call = outcome == cu::k_success ? call : "cuEventRecord";
  }
  if (outcome != cu::k_success) {
    calls().finish(stream());  // a later command was refused: wait for the earlier ones
    return call_failed(call, outcome);
  }
  event.mark_enqueued();
  return {};
}

template <class Command>
Result<Ref<Event>> Queue::submit(const char* call, WaitList after, Command&& command,
                                 bool has_timing) {
  // Creates the event first: nothing may fail once the driver has received the operation.
  auto event = make_operation(device_, has_timing);
  ISTHMUS_TRY(event);
  return enqueue_or_defer(
      *event, after,
      [this, operation = *event, call, submit_command = std::forward<Command>(command)](
          WaitList ready) { return submit_now(*operation, call, ready, submit_command); });
}

CUresult Queue::enqueue_waits(WaitList after) const noexcept {
  for (const auto& dependency : after) {
    if (dependency->settled()) {
      continue;
    }
    const auto outcome =
        calls().stream_wait(stream(), static_cast<Operation&>(*dependency).handle(), 0);
    if (outcome != cu::k_success) {
      return outcome;
    }
  }
  return cu::k_success;
}

// Operations submitted to a stream that is being captured run when the graph is launched, and their
// events never complete. The legacy default stream accepts no work while a stream that waits for it
// is being captured. This query does not affect the capture, whereas a copy would end it with an
// error.
Error Queue::check_not_capturing() const {
  if (!has_external_work()) {
    return {};
  }
  unsigned capturing = cu::k_capture_status_none;
  const auto outcome = calls().is_capturing(stream(), &capturing);
  if (outcome == cu::k_success && capturing == cu::k_capture_status_none) {
    return {};
  }
  return call_failed("cuStreamIsCapturing",
                     outcome != cu::k_success ? outcome : cu::k_error_STREAM_CAPTURE_UNSUPPORTED);
}

Error Queue::check_not_recording() const {
  const ContextGuard guard{calls(), device_.primary_or_null()};
  return check_not_capturing();
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  return submit("cuMemcpyAsync", after, [=, this] {
    return enqueue_copy(calls(), stream(), to_deviceptr(destination), to_deviceptr(source), nbytes);
  });
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (const auto launch = launch_of(device_, shape)) {
    return submit_launch(*launch, after);
  }
  return submit("cuMemcpy2DAsync", after, [=, this] {
    return enqueue_copy_2d(calls(), stream(), shape,
                           static_cast<std::size_t>(device_.traits().max_pitch));
  });
}

Result<std::shared_ptr<RangePlan>> Queue::plan_ranges(const RangedCopy& copy) const {
  const ContextGuard guard{calls(), device_.primary_or_null()};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  if (auto error = check_not_capturing()) {
    return error;
  }
  return std::make_shared<RangePlan>(device_, copy);
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  auto plan = plan_ranges(copy);
  ISTHMUS_TRY(plan);
  Undo cleanup{[&] { (*plan)->release_lists(); }};
  auto submitted = submit("a copy of ranges", after,
                          [this, shared_plan = *plan] { return shared_plan->enqueue(stream()); });
  ISTHMUS_TRY(submitted);
  cleanup.dismiss();
  (*plan)->release_lists_after(*submitted);
  return submitted;
}

Result<Ref<Event>> Queue::submit_launch(const StridedLaunch& launch, WaitList after) {
  return submit("a strided copy", after,
                [this, launch] { return enqueue_launch(device_, stream(), launch); });
}

Result<Ref<Event>> Queue::do_copy_strided(const StridedCopy& copy, WaitList after) {
  const auto launch = launch_of(device_, copy);
  return launch ? submit_launch(*launch, after) : isthmus::Queue::do_copy_strided(copy, after);
}

Result<Ref<Event>> Queue::do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                                  WaitList after) {
  if (device_.is_pageable(destination)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} is pageable memory, which CUDA cannot fill: fill it on the host, or use "
                "host-kind memory",
                destination);
  }
  return submit("a fill", after, [=, this] {
    return enqueue_fill(calls(), stream(), destination, pattern, nbytes);
  });
}

Result<Ref<Event>> Queue::do_fence(WaitList after) {
  return submit("a fence", after, [] { return cu::k_success; });
}

Result<Ref<Event>> Queue::do_mark() {
  return submit("a mark", {}, [] { return cu::k_success; }, true);
}

// Only managed memory can migrate.
Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  if (!device_.can(ISTHMUS_CAN_PREFETCH)) {
    return isthmus::Queue::do_prefetch(pointer, nbytes, to_host, after);
  }
  return submit("cuMemPrefetchAsync", after, [=, this] {
    if (query_pointer(calls(), pointer).kind != ISTHMUS_KIND_SHARED) {
      return cu::k_success;
    }
    if (calls().prefetch == nullptr) {
      const CUdevice host = -1;
      return calls().prefetch_to_ordinal(to_deviceptr(pointer), nbytes,
                                         to_host ? host : device_.index(), stream());
    }
    const CUmemLocation location{to_host ? cu::k_location_host : cu::k_location_device,
                                 to_host ? 0 : device_.index()};
    return calls().prefetch(to_deviceptr(pointer), nbytes, location, 0, stream());
  });
}

// The driver applies advice immediately, not in the queue's order. 0 is not a value of CUDA's
// advice, and advice has no effect on memory that cannot migrate.
Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                    WaitList after) {
  if (!device_.can(ISTHMUS_CAN_ADVISE)) {
    return isthmus::Queue::do_advise(pointer, nbytes, advice, after);
  }
  return submit("cuMemAdvise", after, [=, this] {
    if (advice == 0 || query_pointer(calls(), pointer).kind != ISTHMUS_KIND_SHARED) {
      return cu::k_success;
    }
    if (calls().advise == nullptr) {
      return calls().advise_ordinal(to_deviceptr(pointer), nbytes, advice, device_.index());
    }
    return calls().advise(to_deviceptr(pointer), nbytes, advice,
                          CUmemLocation{cu::k_location_device, device_.index()});
  });
}

bool Queue::can_wait_for(Event& candidate) const noexcept {
  return dynamic_cast<Operation*>(&candidate) != nullptr;
}

}  // namespace isthmus::cuda
