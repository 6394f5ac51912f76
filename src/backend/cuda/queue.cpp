// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/queue.hpp"

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "backend/cuda/thread_queues.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {

// Operations on the stream still complete: the driver destroys the stream after them.
Queue::~Queue() {
  if (!adopted_ && handle_ != legacy_stream() && !os::drivers_unavailable()) {
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

namespace {

Result<CUevent> acquire_event(const Device& device, bool has_timing) {
  if (auto* cached = has_timing ? nullptr : device.events().acquire()) {
    return cached;
  }
  const ContextGuard guard{device.calls(), device.primary_or_null()};
  CUevent event = nullptr;
  const auto outcome =
      guard.outcome() != cu::k_success
          ? guard.outcome()
          : device.calls().create_event(
                &event, has_timing ? cu::k_event_default : cu::k_event_disable_timing);
  if (outcome != cu::k_success) {
    return call_failed("cuEventCreate", outcome);
  }
  return event;
}

}  // namespace

// If memory is exhausted and the cache is full, the driver's event is leaked.
Result<Ref<Operation>> make_operation(const Device& device, bool has_timing) {
  auto handle = acquire_event(device, has_timing);
  ISTHMUS_TRY(handle);
  Undo cleanup{[&] { static_cast<void>(!has_timing && device.events().recycle(*handle)); }};
  auto event = make_ref<Operation>(device, *handle, has_timing);
  cleanup.dismiss();
  return event;
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
